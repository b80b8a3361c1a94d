// What stands beside the lanes: the queue, with why each one waits, and the answers, delivered or withheld.
// Owns: both columns of one pane. Must not know: the lanes, the clock.

import { element, badge, setText, setTitle, describe, countText, numberText } from "./dom.js";
import { REASON_WORDS, waitingAt, headReasonAt, answersAt, answerText } from "./model.js";

const WAITING_H = 30;
const CARD_H = 27;
const HEADING_H = 19;

export function newQueue(container, count, model, pane, height) {
  const room = Math.max(2, Math.floor(height / WAITING_H));
  let shown = null;
  return function update(step, over) {
    const waiting = over ? [] : waitingAt(pane, step);
    const reason = headReasonAt(pane, step) || "behind_head";
    const key = `${waiting.join()}|${reason}`;
    if (key === shown) return;
    shown = key;
    setText(count, waiting.length ? numberText(waiting.length) : "");
    const fits = waiting.length > room ? room - 1 : room;
    const made = waiting.slice(0, fits).map((request, place) => {
      const who = model.requests[request];
      const words = place === 0 ? REASON_WORDS[reason] || reason.replace(/_/g, " ") : REASON_WORDS.behind_head;
      const row = element("div", place === 0 ? "waiting head" : "waiting");
      row.append(badge(who), element("span", "why", words));
      row.title = `${describe(who)} — waits: ${words}`;
      return row;
    });
    if (waiting.length > fits) made.push(element("div", "more", `+ ${waiting.length - fits} more`));
    if (!waiting.length) made.push(element("div", "nobody", "nobody waits"));
    container.replaceChildren(...made);
  };
}

export function newAnswers(container, model, pane, height) {
  let shown = null;
  return function update(step, playing) {
    const answers = answersAt(pane, step);
    const key = `${answers.withheld.join()}|${answers.delivered.join()}|${answers.gone.join()}`;
    if (key !== shown) {
      const before = new Set(shown === null ? [] : shown.split("|")[1].split(","));
      shown = key;
      const groups = [["Finished, withheld", "withheld"], ["Delivered", "delivered"], ["No answer", "gone"]];
      const headings = groups.filter(([, kind]) => answers[kind].length).length;
      const total = answers.withheld.length + answers.delivered.length + answers.gone.length;
      let room = Math.max(1, Math.floor((height - headings * HEADING_H) / CARD_H));
      if (total > room) room -= 1;
      const made = [];
      let left = room;
      for (const [title, kind] of groups) {
        if (!answers[kind].length) continue;
        made.push(element("div", `group ${kind}`, title));
        for (const request of answers[kind].slice(0, left)) {
          made.push(card(model, pane, request, kind, playing && kind === "delivered" && !before.has(String(request))));
        }
        left = Math.max(0, left - answers[kind].length);
      }
      if (total > room) made.push(element("div", "more", `+ ${total - room} more`));
      if (!total) made.push(element("div", "nobody", "no answer yet"));
      container.replaceChildren(...made);
    }
    for (const node of container.children) {
      if (node.withheldSince !== undefined) setText(node.lastChild, countText(step - node.withheldSince, "step"));
    }
    return answers;
  };
}

function card(model, pane, request, kind, isNew) {
  const who = model.requests[request];
  const rows = pane.rows;
  const made = element("div", `answer ${kind}${isNew ? " enter" : ""}`);
  const text = answerText(pane, request);
  const body = kind === "gone" ? { abort: "its user left", rejected: "rejected", error: "error" }[rows.reason[request]] || "ended"
    : text === null ? countText(pane.tokens[request].total, "token") : text || "(an empty answer)";
  made.append(badge(who), element("span", "words", body));
  const meta = element("span", "meta");
  if (kind === "delivered") {
    meta.textContent = countText(rows.delivered[request] - rows.arrived[request] + 1, "step");
    setTitle(made, `${describe(who)} — finished at step ${rows.finished[request]}, delivered at step ${rows.delivered[request]}, after ${meta.textContent} of waiting: ${body.slice(0, 400)}`);
  } else if (kind === "withheld") {
    made.withheldSince = rows.finished[request];
    setTitle(made, `${describe(who)} — finished at step ${rows.finished[request]}, and withheld from its user: ${body.slice(0, 400)}`);
  } else {
    setTitle(made, `${describe(who)} — ${rows.why[request] || body}`);
  }
  made.append(meta);
  return made;
}
