// One run on the screen: heading, score, queue, lanes, answers, counters, map.
// Owns: putting these together and asking each to show one step. Must not know: the clock's rules, buttons, Python.

import { element, setText, setTitle, numberText, secondsText } from "./dom.js";
import { paneStepAt } from "./model.js";
import { newLanes, laneSize } from "./lanes.js";
import { newQueue, newAnswers } from "./sides.js";
import { newMap } from "./map.js";

const MIN_BODY = 240;
const COUNTED = [["working", [1, 2]], ["held", [3]], ["empty", []], ["stalled", [4]]];

export function bodyHeight(model) {
  const heights = model.panes.map((pane) => {
    const { height, gap } = laneSize(pane.numSlots);
    return pane.numSlots * (height + gap) - gap;
  });
  return Math.max(MIN_BODY, ...heights);
}

export function newPane(model, pane, palette) {
  const root = element("section", `pane ${pane.policy}`);
  root.setAttribute("aria-label", `${pane.label} batching`);
  const room = bodyHeight(model);

  const head = element("header", "pane-head");
  const names = element("div", "names");
  names.append(element("h3", "", headline(pane)), element("p", "", pane.subtitle));
  const score = element("div", "score");
  const scoreNumber = element("span", "score-number", "0");
  const scoreWords = element("span", "score-words");
  const scoreMain = element("span", "", `of ${model.requests.length} answers delivered`);
  const scoreHeld = element("span", "score-withheld");
  scoreWords.append(scoreMain, scoreHeld);
  score.append(scoreNumber, scoreWords);
  head.append(names, score);

  const body = element("div", "pane-body");
  const [queueColumn, queueList, queueCount] = column("queue", "Queue");
  const [laneColumn, laneList] = column("lanes", pane.numSlots === 1 ? "Slot" : "Slots");
  const [answerColumn, answerList] = column("answers", "Answers");
  answerList.tabIndex = 0; // it scrolls where there is little room, and then by key as well
  answerList.setAttribute("role", "group");
  answerList.setAttribute("aria-label", "Answers");
  const over = element("div", "over");
  laneList.append(over);
  body.append(queueColumn, laneColumn, answerColumn);

  const laneHolder = element("div", "lane-holder");
  laneList.append(laneHolder);
  const lanes = newLanes(laneHolder, model, pane);
  const queue = newQueue(queueList, queueCount, model, pane, room);
  const answers = newAnswers(answerList, model, pane, room);

  const counters = newCounters(pane);
  const mapBox = element("div", "map");
  const map = newMap(mapBox, model, pane, palette);
  root.append(head, body, counters.root, mapBox);
  let wasOver = null;
  // Live, with runs that go on together: this one has nothing to do while another still has.
  const isOvertaken = model.live && model.panes.some((other) => other.status === "unfinished" && other.numSteps > pane.numSteps);

  return {
    root,
    mapBox,
    map,
    pane,
    show(clock, playing, themeKey) {
      const { step, over: isOver, exists } = paneStepAt(pane, clock);
      map.draw(clock.position, clock.unit, themeKey);
      if (!exists) {
        setText(over, pane.status === "unfinished" ? "this run has not begun" : "an empty run: no steps");
        root.classList.add("is-over");
        lanes.update(0, true, false);
        return step;
      }
      lanes.update(step, isOver, playing);
      queue(step, isOver && pane.status === "complete");
      const { withheld, delivered } = answers(step, playing);
      setText(scoreNumber, numberText(delivered.length));
      setText(scoreHeld, withheld.length ? `${withheld.length} finished, withheld` : "\u00a0");
      score.classList.toggle("some-withheld", withheld.length > 0);
      counters.show(step);
      if (isOver !== wasOver) {
        wasOver = isOver;
        root.classList.toggle("is-over", isOver);
        setText(over, isOver ? overText(pane, isOvertaken) : "");
      }
      return step;
    },
    // Where a request's badge is, for what flies between the columns.
    badgeOf: lanes.badgeOf,
    state: (clock) => ({ ...paneStepAt(pane, clock) }),
  };
}

function headline(pane) {
  return pane.label.replace(/^(Static|Continuous|Sequential)\b/, "$1 batching");
}

function overText(pane, isOvertaken) {
  if (pane.status === "complete") return `All done. The last step was ${pane.numSteps - 1}.`;
  if (pane.status === "unfinished") return isOvertaken ? "nothing left to do" : "not computed yet";
  return `${pane.status} after step ${pane.numSteps - 1}${pane.message ? `: ${pane.message}` : ""}`;
}

function column(name, title) {
  const root = element("div", `column ${name}`);
  const heading = element("h4", "", title);
  const count = element("span", "count");
  heading.append(" ", count);
  const list = element("div", "list");
  root.append(heading, list);
  return [root, list, count];
}

function newCounters(pane) {
  const root = element("div", "counters");
  const bar = element("div", "share");
  const words = element("div", "numbers");
  const shares = {};
  const numbers = {};
  for (const [name] of COUNTED) {
    if (name === "stalled" && !pane.totals[4].some((value) => value > 0)) continue;
    shares[name] = element("span", `share-${name}`);
    bar.append(shares[name]);
    const item = element("span", `number ${name}`);
    numbers[name] = element("b");
    item.append(element("i", `key ${name}`), numbers[name], ` ${name}`);
    words.append(item);
  }
  words.append(element("span", "clock-word", "slot-steps, counted"));
  const right = element("div", "numbers second");
  const tokens = element("b");
  const seconds = element("b");
  const tokenWord = { model: "from the model", recorded: "recorded", scripted: "scripted" }[pane.tokensFrom] || pane.tokensFrom;
  const long = element("span", "long-step");
  right.append(tokens, element("span", "clock-word", `tokens, ${tokenWord}`), seconds, element("span", "clock-word", `${pane.seconds}`), long);
  root.append(bar, words, right);
  setTitle(root, "A slot-step is one slot during one step. Working = prefill + decode.");
  return {
    root,
    show(step) {
      const slotSteps = (step + 1) * pane.numSlots;
      let seated = 0;
      for (const [name, phases] of COUNTED) {
        if (!numbers[name]) continue;
        const value = phases.reduce((sum, phase) => sum + pane.totals[phase][step], 0);
        if (name !== "empty") seated += value;
        if (name !== "empty") paint(name, value, slotSteps);
      }
      paint("empty", slotSteps - seated - (numbers.stalled ? 0 : pane.totals[4][step]), slotSteps);
      setText(tokens, numberText(pane.tokenTotals[step]));
      setText(seconds, secondsText(pane.starts[step + 1]));
      const long_ = pane.longSteps.get(step);
      setText(long, long_ ? `this step: ${secondsText(long_.seconds)}, ${long_.times.toFixed(0)}× the usual` : "");
    },
  };

  function paint(name, value, all) {
    setText(numbers[name], numberText(value));
    shares[name].style.flexGrow = String(value / all);
  }
}
