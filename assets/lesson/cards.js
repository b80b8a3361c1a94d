// What stands on each kind of card. Owns: their elements. Must not know: the player, order, progress beyond what it is given.

import { element } from "../player/dom.js";
import { blockElements } from "./blocks.js";
import { pictureElement } from "./picture.js";
import { calculatorElement } from "./calculator.js";

const LETTERS = "ABCDE";

// `hooks`: {chosen: place | undefined, choose(place), show(run key), links: whether the page Compare is there}
export function cardElements(lesson, card, hooks) {
  return { intro, stop, question, try: tryIt, read, end }[card.kind](lesson, card, hooks);
}

function intro(lesson, card) {
  const heading = element("h2", "", lesson.title);
  const about = element("p", "about", `Lesson ${lesson.number} of ${lesson.count} · ${lesson.minutes} minutes`);
  return [about, heading, ...blockElements(card.blocks)];
}

function stop(lesson, card) {
  const count = lesson.cards.filter((one) => one.kind === "stop").length;
  const made = [element("p", "about", `Stop ${card.stop} of ${count} · step ${card.step}`), ...blockElements(card.blocks)];
  if (card.picture) made.push(pictureElement(card.picture));
  return made;
}

function question(lesson, card, hooks) {
  const list = element("div", "choices");
  const answer = element("div", "because");
  answer.setAttribute("role", "status");
  const buttons = card.choices.map((choice, place) => {
    const button = element("button", "choice");
    button.type = "button";
    const words = element("span", "words");
    words.append(...blockElements(choice.blocks));
    button.append(element("b", "letter", LETTERS[place]), words, element("span", "verdict"));
    button.onclick = () => {
      hooks.choose(place);
      reveal(place);
    };
    list.append(button);
    return button;
  });
  const reveal = (place) => {
    const chosen = card.choices[place];
    buttons.forEach((button, number) => {
      const isRight = card.choices[number].right;
      button.classList.toggle("right", isRight && chosen.right);
      button.classList.toggle("wrong", number === place && !chosen.right);
      button.setAttribute("aria-pressed", String(number === place));
      const verdict = number === place ? (chosen.right ? "✓ right" : "✗ not so") : "";
      button.lastChild.textContent = verdict;
    });
    answer.replaceChildren(...blockElements(chosen.because));
    if (!chosen.right) answer.append(element("p", "again", "Have another guess, or go on and see."));
  };
  if (hooks.chosen !== undefined) reveal(hooks.chosen);
  return [element("p", "about", "Predict, then see"), ...blockElements(card.blocks), list, answer];
}

function tryIt(lesson, card, hooks) {
  const list = element("div", "options");
  const link = element("a", "live", "The same on the page Compare, where it runs live too");
  const buttons = card.options.map((option, place) => {
    const button = element("button", "option", option.label);
    button.type = "button";
    button.onclick = () => {
      buttons.forEach((other, number) => other.setAttribute("aria-pressed", String(number === place)));
      link.href = `./?${option.link}`;
      hooks.show(option.run);
    };
    button.setAttribute("aria-pressed", "false");
    list.append(button);
    return button;
  });
  link.href = `./?${card.options[0].link}`;
  link.target = "_blank";
  const look = element("div", "look");
  look.append(element("h4", "", "What to look for"), ...blockElements(card.look_for));
  const made = [element("p", "about", "Try it"), ...blockElements(card.blocks), list, look];
  if (card.calculator) made.push(calculatorElement(card.options.map((option) => [option.label, option.rates[0]])));
  if (hooks.links) made.push(link);
  return made;
}

function read(lesson, card) {
  const made = [element("p", "about", "Read it"), element("p", "", "The code behind it. Nothing of it is copied by hand.")];
  card.sources.forEach(({ where, code }, place) => {
    const box = element("details", "source");
    box.open = place === 0;
    box.append(element("summary", "", where), element("pre", "", code));
    made.push(box);
  });
  return made;
}

function end(lesson, card) {
  return [element("p", "about", "That was it"), element("h3", "", "Further reading"), ...blockElements(card.blocks)];
}
