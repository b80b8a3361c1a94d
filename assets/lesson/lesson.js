// A lesson on the page: a card at a time, and the player at the step that the card speaks of.
// Owns: which card is on show, keys, presenting. Must not know: Streamlit, files, how cards and players draw.

import { element } from "../player/dom.js";
import { newPlayer } from "../player/player.js";
import { cardElements } from "./cards.js";
import { blockElements } from "./blocks.js";
import { progressOf, keepProgress } from "./progress.js";

// `root` is the element of lesson.html; `door`: {lesson(id) goes to a lesson ("" is the list), place(number) keeps the address,
// links: whether the page Compare is there, href(id): what a link to a lesson says}.
export function newLesson(root, door) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const player = newPlayer(root.querySelector(".batchviz"));
  const [bar, index, body, cardBox, dots, notes] = ["bar", "index", "body", "card", "dots", "notes"].map(part);
  const back = root.querySelector('[data-move="back"]');
  const on = root.querySelector('[data-move="on"]');
  let lesson = null;
  let place = 0;
  let shown = null; // the key of the run in the player
  let numSeeks = 0;
  let progress = null;

  function show(key, wish) {
    if (key !== shown) player.load(lesson.runs[key]);
    shown = key;
    numSeeks += 1;
    player.seek({ n: numSeeks, ...wish });
  }

  // Questions leave the player where it was: what they ask about is not to be seen yet.
  function setStage(number) {
    const card = lesson.cards[number];
    if (card.run) {
      show(card.run, { step: card.step, play: false });
      pointAt(card.focus);
    } else if (card.kind !== "question") {
      pointAt(null);
    }
  }

  function pointAt(focus) {
    for (const old of root.querySelectorAll(".is-focus")) old.classList.remove("is-focus");
    if (!focus) return;
    const panes = [...root.querySelectorAll(".batchviz .pane")];
    const chosen = focus.pane === null ? panes : panes.slice(focus.pane, focus.pane + 1);
    const names = { queue: ".column.queue", slots: ".column.lanes", answers: ".column.answers", map: ".map", counters: ".counters" };
    for (const pane of chosen) {
      const found = focus.part ? pane.querySelector(names[focus.part]) : focus.pane === null ? null : pane;
      const lane = focus.slot === null ? null : pane.querySelectorAll(".lane-holder > *")[focus.slot];
      if (!lane && !found) continue;
      (lane || found).classList.add("is-focus");
      // The words stay beside it where there is room for both.
      if (focus.part && window.innerWidth >= 900) (lane || found).scrollIntoView({ block: "nearest", behavior: "instant" });
    }
  }

  function go(number, { quiet = false } = {}) {
    const last = lesson.cards.length - 1;
    place = Math.max(0, Math.min(last, number));
    const card = lesson.cards[place];
    progress.seen = Math.max(progress.seen, place + 1);
    progress.of = lesson.cards.length;
    keepProgress(lesson.id, progress);
    // A question about what lies ahead needs the stage of the stop before it.
    let staged = place;
    while (staged > 0 && lesson.cards[staged].kind === "question") staged -= 1;
    if (!shown && !lesson.cards[staged].run) setStage(lesson.cards.findLastIndex((one, at) => at < place && one.run));
    setStage(staged);
    const following = lesson.cards[place + 1];
    const isBefore = card.kind === "stop" && following.kind === "question" && !(card.focus && card.focus.part === "map");
    root.classList.toggle("asking", card.kind === "question");
    root.classList.toggle("before-question", isBefore);
    cardBox.className = `card ${card.kind}`;
    cardBox.replaceChildren(
      ...cardElements(lesson, card, {
        links: door.links,
        chosen: progress.chosen[place],
        choose(chosen) {
          progress.chosen[place] = chosen;
          keepProgress(lesson.id, progress);
        },
        show: (key) => show(key, { step: 0, play: true }),
      }),
    );
    cardBox.scrollTop = 0;
    back.disabled = place === 0 && !lesson.previous;
    on.disabled = place === last && !lesson.next;
    on.textContent = place < last ? "On" : lesson.next ? "Next lesson" : "The end";
    back.textContent = place > 0 || !lesson.previous ? "Back" : "Lesson before";
    [...dots.children].forEach((dot, at) => {
      dot.firstChild.setAttribute("aria-current", at === place ? "step" : "false");
      dot.classList.toggle("seen", at < progress.seen);
    });
    showNotes(card);
    if (!quiet) cardBox.focus({ preventScroll: true });
    door.place(place);
  }

  function showNotes(card) {
    const note = card.note && card.note.length ? blockElements(card.note) : [element("p", "", "Nothing for this card.")];
    const following = lesson.cards[place + 1];
    const words = { question: "a question", try: "a knob to turn", read: "the source", end: "the end", stop: "the next stop" };
    notes.replaceChildren(element("h4", "", "Speaker notes"), ...note, element("p", "then", following ? `Then: ${words[following.kind]}.` : ""));
  }

  const moves = {
    on: () => (place < lesson.cards.length - 1 ? go(place + 1) : lesson.next && door.lesson(lesson.next.id)),
    back: () => (place > 0 ? go(place - 1) : lesson.previous && door.lesson(lesson.previous.id)),
  };
  on.onclick = moves.on;
  back.onclick = moves.back;

  function onKey(event) {
    if (!lesson || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    if (target instanceof Element && target.closest("input, textarea, select, [contenteditable]")) return;
    const deed = { n: moves.on, PageDown: moves.on, p: moves.back, PageUp: moves.back, Escape: () => present(false) }[event.key];
    if (!deed) return;
    event.preventDefault();
    deed();
  }
  document.addEventListener("keydown", onKey);

  function present(isOn) {
    root.dataset.present = String(isOn);
    document.documentElement.classList.toggle("bv-presenting", isOn);
  }

  function showBar() {
    const all = link("All lessons", "");
    const title = element("span", "title", lesson ? lesson.title : "");
    const button = element("button", "present", "Present");
    button.type = "button";
    button.title = "Large type, the run and the words alone; Escape ends it";
    button.onclick = () => present(root.dataset.present !== "true");
    bar.replaceChildren(...(lesson ? [all, title, button] : []));
  }

  function link(words, id) {
    const made = element("a", "", words);
    made.href = door.href(id);
    made.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      door.lesson(id);
    };
    return made;
  }

  function showIndex(lessons) {
    const list = element("ol", "lessons");
    for (const one of lessons) {
      const item = element("li");
      const { seen, of } = progressOf(one.id);
      const state = seen && seen >= of ? "✓ done" : seen ? `${seen} of ${of}` : `${one.minutes} minutes`;
      const words = element("div", "about-lesson");
      words.append(...blockElements(one.about));
      const head = link("", one.id);
      head.append(element("b", "", one.title), element("span", "state", state));
      item.append(head, words);
      list.append(item);
    }
    index.replaceChildren(list);
  }

  return {
    player,
    // The list of lessons, or one lesson at a card.
    load(data, number = 0) {
      const isIndex = !data.cards;
      root.classList.toggle("is-index", isIndex);
      body.hidden = isIndex;
      notes.hidden = isIndex;
      index.hidden = !isIndex;
      if (isIndex) {
        lesson = null;
        shown = null;
        showBar();
        showIndex(data.lessons);
        return;
      }
      if (lesson && lesson.id === data.id) return;
      lesson = data;
      shown = null;
      progress = progressOf(data.id);
      dots.replaceChildren(
        ...data.cards.map((card, at) => {
          const dot = element("li");
          const button = element("button", card.kind);
          button.type = "button";
          button.setAttribute("aria-label", `Card ${at + 1} of ${data.cards.length}`);
          button.onclick = () => go(at);
          dot.append(button);
          return dot;
        }),
      );
      showBar();
      go(number, { quiet: true });
    },
    go,
    present,
    destroy() {
      document.removeEventListener("keydown", onKey);
      present(false);
      player.destroy();
    },
  };
}
