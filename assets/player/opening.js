// How a page of its own opens: what its file says, and over it what its address says after the #, for example
// `#step=12&play=1&speed=2&controls=0`. Owns: reading both. Pure: no DOM; tests run this file in node. Must not know: players.
// Whatever is not exactly one of these is ignored, and of a name that stands twice the first counts.

import { SPEEDS } from "./clock.js";

const MAX_FRAGMENT = 200;
const MAX_OPENING_STEP = 10_000_000;
const FLAGS = { 0: false, 1: true };

// {step, play, speed, controls}: null is as usual. `options` is {step, play} of the file.
export function readOpening(options, fragment) {
  const said = new Map();
  if (fragment.length <= MAX_FRAGMENT) {
    for (const part of fragment.replace(/^#/, "").split("&")) {
      const found = /^(step|play|speed|controls)=([0-9.]{1,8})$/.exec(part);
      if (found && !said.has(found[1])) said.set(found[1], found[2]);
    }
  }
  const step = said.get("step") ?? "";
  return {
    step: /^[0-9]+$/.test(step) && Number(step) <= MAX_OPENING_STEP ? Number(step) : (options.step ?? null),
    play: FLAGS[said.get("play")] ?? options.play ?? null,
    speed: SPEEDS.find((speed) => String(speed) === said.get("speed")) ?? null,
    controls: FLAGS[said.get("controls")] ?? null,
  };
}
