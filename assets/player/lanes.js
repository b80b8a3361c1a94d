// The slots: one lane each, with who sits there, what they do, and the tokens as they come.
// Owns: the lanes of one pane. Must not know: the queue, the answers, the clock.

import { element, badge, setText, setTitle, describe, countText } from "./dom.js";
import { PHASE_NAMES, spanAt, tokensBy, readBy } from "./model.js";

const MAX_CHIPS = 16;
const SLIDE = { duration: 380, easing: "cubic-bezier(0.2, 0.8, 0.2, 1)" };
const HELD_TEXT = ["finished — slot held", " until the group ends"];

// Height of a lane and gap, in pixels, by number of slots: up to 64 lanes fit on a screen.
export function laneSize(numSlots) {
  if (numSlots <= 4) return { height: 50, gap: 12 };
  if (numSlots <= 8) return { height: 36, gap: 6 };
  if (numSlots <= 16) return { height: 23, gap: 4 };
  if (numSlots <= 32) return { height: 15, gap: 2 };
  return { height: 9, gap: 1 };
}

export function newLanes(container, model, pane) {
  const { height, gap } = laneSize(pane.numSlots);
  container.replaceChildren();
  container.style.setProperty("--lane-h", `${height}px`);
  container.style.setProperty("--lane-gap", `${gap}px`);
  const chips = height >= 20;
  const counts = height >= 12;
  container.classList.toggle("compact", chips && height < 34);
  container.classList.toggle("dense", !chips);
  container.classList.toggle("tiny", height < 12);
  const lanes = pane.slots.map((_, slot) => newLane(container, slot));
  return {
    update(step, over, playing) {
      lanes.forEach((lane, slot) => updateLane(lane, model, pane, slot, over ? null : spanAt(pane, slot, step), step, chips, counts, playing));
    },
    badgeOf: (slot) => lanes[slot].badge,
  };
}

function newLane(container, slot) {
  const root = element("div", "lane");
  root.dataset.slot = String(slot);
  const holder = element("span", "seat");
  const tape = element("span", "tape");
  const strip = element("span", "strip");
  const note = element("span", "note");
  tape.append(strip, note);
  const phase = element("span", "phase");
  const name = element("span", "phase-name");
  const amount = element("span", "phase-count");
  phase.append(name, amount);
  root.append(holder, tape, phase);
  container.append(root);
  return { root, holder, badge: holder, tape, strip, note, name, amount, request: undefined, phase: -1, shown: 0 };
}

function updateLane(lane, model, pane, slot, span, step, chips, counts, playing) {
  const request = span ? span.request : null;
  const phase = span ? span.phase : 0;
  if (request !== lane.request) seatRequest(lane, model, pane, slot, request, playing);
  if (phase !== lane.phase) {
    lane.phase = phase;
    lane.root.dataset.phase = PHASE_NAMES[phase];
    setText(lane.name, PHASE_NAMES[phase]);
    const note = phase === 3 ? heldNote(pane, request) : phase === 0 ? ["empty"] : [];
    lane.note.replaceChildren(...note.map((words) => element("span", "", words)));
  }
  const read = phase === 1 ? readBy(pane, request, step) : null;
  lane.tape.style.setProperty("--read", read === null ? "0" : String(read / model.requests[request].promptTokens));
  if (request === null) {
    setText(lane.amount, "");
    return;
  }
  const count = tokensBy(pane, request, step);
  if (!counts) setText(lane.amount, "");
  else if (phase === 3) setText(lane.amount, countText(step - span.first + 1, "step"));
  else if (read !== null && count === 0) setText(lane.amount, `${read} of ${model.requests[request].promptTokens}`);
  else setText(lane.amount, countText(count, "token"));
  if (chips) showTokens(lane, model, pane, request, count);
  else lane.strip.style.transform = `scaleX(${Math.min(1, count / (model.requests[request].maxTokens || 1))})`;
}

function heldNote(pane, request) {
  if (pane.rows.aborted[request] !== null && pane.rows.finished[request] === null) {
    return ["its user left — slot held", " until the group ends"];
  }
  return HELD_TEXT;
}

function seatRequest(lane, model, pane, slot, request, playing) {
  const was = lane.request;
  lane.request = request;
  lane.shown = -1;
  lane.holder.replaceChildren();
  lane.strip.replaceChildren();
  lane.strip.className = "strip";
  if (request === null) {
    setTitle(lane.root, `slot ${slot}: empty`);
    lane.holder.append(element("span", "badge vacant", ""));
    return;
  }
  const who = model.requests[request];
  lane.holder.append(badge(who));
  lane.strip.classList.add(`c${who.colour}`);
  setTitle(lane.root, `slot ${slot}: ${describe(who)}`);
  if (playing && was !== undefined) {
    lane.holder.animate([{ transform: "translateX(-46px)", opacity: 0 }, {}], SLIDE);
    lane.tape.animate([{ transform: "translateX(-30px)", opacity: 0 }, {}], SLIDE);
  }
}

function showTokens(lane, model, pane, request, count) {
  if (count === lane.shown) return;
  const { pieces, total } = pane.tokens[request];
  const added = count - lane.shown;
  if (lane.shown >= 0 && added > 0 && added <= 8) {
    if (lane.strip.lastChild) lane.strip.lastChild.classList.remove("new");
    for (let i = lane.shown; i < count; i++) lane.strip.append(chip(pieces, i, total, pane, request));
    while (lane.strip.childElementCount > MAX_CHIPS) lane.strip.firstChild.remove();
  } else {
    const from = Math.max(0, count - MAX_CHIPS);
    const made = [];
    if (from === 0) made.push(promptChip(model.requests[request]));
    for (let i = from; i < count; i++) made.push(chip(pieces, i, total, pane, request));
    lane.strip.replaceChildren(...made);
  }
  if (count > 0) lane.strip.lastChild.classList.add("new");
  lane.shown = count;
}

function promptChip(request) {
  const made = element("span", "chip prompt", request.prompt ? `“${request.prompt}”` : `prompt of ${countText(request.promptTokens || 0, "token")}`);
  return made;
}

function chip(pieces, index, total, pane, request) {
  if (pieces === null) return element("span", "chip number", String(index + 1));
  const piece = pieces[index];
  if (piece === "") {
    const isEnd = index === total - 1 && pane.rows.finished[request] !== null;
    const made = element("span", "chip silent", isEnd ? "end" : "·");
    made.title = isEnd ? "the end token: it ends the answer and shows nothing" : "shows nothing yet";
    return made;
  }
  const text = piece.replace(/\n/g, "↵").trim();
  return element("span", /^\s/.test(piece) || index === 0 ? "chip" : "chip joined", text === "" ? "␣" : text);
}
