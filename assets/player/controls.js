// Buttons, keys, the scrub bar. Owns: turning what a person does into calls on `actions`.
// Must not know: panes, traces, Python. Handlers are assigned, never added, so that setting up twice does no harm.

import { setText, secondsText } from "./dom.js";
import { SPEEDS } from "./clock.js";

const KEYS = { ArrowRight: "forward", ArrowLeft: "back", Home: "start", End: "end", " ": "toggle" };
const SHIFT_KEYS = { ArrowRight: "nextEvent", ArrowLeft: "previousEvent" };

export function newControls(root, actions) {
  const find = (name) => root.querySelector(`[data-part="${name}"]`);
  const scrub = find("scrub");
  const toggle = find("toggle");
  const speed = find("speed");
  const unit = find("unit");
  const where = find("where");
  const whole = find("whole");
  for (const button of root.querySelectorAll("[data-action]")) {
    button.onclick = () => actions[button.dataset.action]();
  }
  speed.replaceChildren(
    ...SPEEDS.map((value) => {
      const option = document.createElement("option");
      option.value = String(value);
      option.textContent = `${value}×`;
      return option;
    }),
  );
  speed.value = "1";
  speed.onchange = () => actions.speed(Number(speed.value));
  unit.onchange = () => actions.unit(unit.value);
  scrub.oninput = () => actions.scrub(Number(scrub.value));
  scrub.onchange = () => actions.scrubEnd();

  root.onkeydown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    const isField = target.isContentEditable || /^(SELECT|TEXTAREA)$/.test(target.tagName) || (target.tagName === "INPUT" && target !== scrub);
    if (isField || (event.key === " " && target.tagName === "BUTTON")) return;
    const action = event.shiftKey ? SHIFT_KEYS[event.key] : KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    actions[action]();
  };

  return function show(clock, step, maxSteps) {
    const last = Math.max(0, maxSteps - 1);
    setAttribute(scrub, "max", clock.unit === "step" ? last : clock.end);
    setAttribute(scrub, "step", clock.unit === "step" ? 1 : clock.end / 1000 || 1);
    const value = String(clock.unit === "step" ? Math.floor(clock.position + 1e-9) : clock.position);
    if (scrub.value !== value) scrub.value = value;
    scrub.style.setProperty("--filled", `${clock.end > 0 ? (clock.position / clock.end) * 100 : 0}%`);
    setText(where, clock.unit === "step" ? `Step ${step}` : secondsText(clock.position));
    setText(whole, clock.unit === "step" ? `of 0–${last}` : `of ${secondsText(clock.end)}`);
    setAttribute(scrub, "aria-valuetext", clock.unit === "step" ? `step ${step}, the last is ${last}` : secondsText(clock.position));
    if (toggle.dataset.playing !== String(clock.playing)) {
      toggle.dataset.playing = String(clock.playing);
      toggle.setAttribute("aria-label", clock.playing ? "Pause" : "Play");
      setText(toggle.querySelector(".word"), clock.playing ? "Pause" : "Play");
    }
    if (speed.value !== String(clock.speed)) speed.value = String(clock.speed);
    if (unit.value !== clock.unit) unit.value = clock.unit;
  };
}

function setAttribute(target, name, value) {
  if (target.getAttribute(name) !== String(value)) target.setAttribute(name, String(value));
}
