// What stands beside the lanes: the queue, with why each one waits, and the answers, delivered or withheld.
// Owns: both columns of one pane. Must not know: the lanes, the clock.

import { element, badge, setText, setTitle, describe, countText, numberText } from "./dom.js";
import { REASON_WORDS, waitingAt, headReasonAt, answersAt, answerText } from "./model.js";

export function newQueue(container, count, model, pane, room) {
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

export function newAnswers(container, model, pane, room) {
  let shown = null;
  return function update(step, playing) {
    const answers = answersAt(pane, step);
    const key = `${answers.withheld.join()}|${answers.delivered.join()}|${answers.gone.join()}`;
    if (key !== shown) {
      const before = new Set(shown === null ? [] : shown.split("|")[1].split(","));
      shown = key;
      const all = [
        ...answers.withheld.map((request) => card(model, pane, request, "withheld")),
        ...answers.delivered.map((request) => card(model, pane, request, "delivered", playing && !before.has(String(request)))),
        ...answers.gone.map((request) => card(model, pane, request, "gone")),
      ];
      const fits = all.length > room ? room - 1 : room;
      const made = all.slice(0, fits);
      if (all.length > fits) made.push(element("div", "more", `+ ${all.length - fits} more`));
      if (!all.length) made.push(element("div", "nobody", "no answer yet"));
      container.replaceChildren(...made);
    }
    for (const node of container.children) {
      if (node.withheldSince !== undefined) {
        const steps = step - node.withheldSince;
        setText(node.lastChild, steps > 0 ? `withheld ${countText(steps, "step")}` : "withheld");
      }
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
    meta.textContent = `waited ${countText(rows.delivered[request] - rows.arrived[request] + 1, "step")}`;
    setTitle(made, `${describe(who)} — finished at step ${rows.finished[request]}, delivered at step ${rows.delivered[request]}: ${body.slice(0, 400)}`);
  } else if (kind === "withheld") {
    made.withheldSince = rows.finished[request];
    setTitle(made, `${describe(who)} — finished at step ${rows.finished[request]}, and withheld from its user: ${body.slice(0, 400)}`);
  } else {
    setTitle(made, `${describe(who)} — ${rows.why[request] || body}`);
  }
  made.append(meta);
  return made;
}
