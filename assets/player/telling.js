// The line that tells what just happened; what is spoken to screen readers when playing stops.
// Owns: which sentence is shown and for how long. Must not know: who writes the sentences.

import { element, badge, setText } from "./dom.js";
import { lastAtMost } from "./model.js";

const SHORTEST_MS = 1800; // while playing, a sentence stays this long unless a weightier one comes

export function newTelling(line, spoken, model) {
  let shownKey = null;
  let shownAt = 0;
  let shownWeight = 0;
  let spokenKey = null;

  function fill(target, step, parts, label) {
    const lead = element("span", "when", label ? `${label}, step ${step}` : `Step ${step}`);
    target.append(lead, " ");
    for (const part of parts) {
      if (typeof part === "number") target.append(badge(model.requests[part], "inline"));
      else target.append(part);
    }
  }

  function say(rows, key) {
    line.replaceChildren();
    for (const [step, parts, label] of rows) {
      const row = element("p", "told");
      fill(row, step, parts, label);
      line.append(row);
    }
    line.classList.toggle("many", rows.length > 1);
    shownKey = key;
  }

  return function update(steps, unit, playing, now) {
    const sources = unit === "step" ? [model.narration.joint] : model.narration.panes;
    const at = sources.map((source, i) => lastAtMost(source.steps, unit === "step" ? Math.max(...steps) : steps[i]));
    const key = `${unit}|${at.join()}`;
    const weight = Math.max(0, ...at.map((index, i) => (index < 0 ? 0 : sources[i].weights[index])));
    if (key !== shownKey) {
      const isEarly = playing && now - shownAt < SHORTEST_MS && weight <= shownWeight;
      if (!isEarly || shownKey === null) {
        const rows = at.flatMap((index, i) => index < 0 ? [] : [[sources[i].steps[index], sources[i].parts[index], unit === "step" ? "" : model.panes[i].label]]);
        say(rows, key);
        shownAt = now;
        shownWeight = weight;
      }
    }
    if (!playing && key !== spokenKey) {
      spokenKey = key;
      setText(spoken, `Now at step ${Math.max(...steps)}. ${line.textContent}`);
    }
  };
}
