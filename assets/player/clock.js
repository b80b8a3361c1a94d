// Where the cursor is and how it moves. Pure: no DOM, no timers; tests run this file in node.
// Owns: the clock's state and every rule about it. Must not know: traces, panes, buttons.
// `position` is in steps (unit "step") or in seconds (unit "time"), from 0 to `end`. `edge` is how far a live run has got.

export const STEPS_PER_SECOND = 4;
export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
export const MAX_FRAME_SECONDS = 0.25; // a tab that slept does not leap when it comes back
export const CATCH_UP_PER_SECOND = 3; // how hastily a follower closes the gap to a live run's edge

export function newClock(end) {
  return { unit: "step", position: 0, end, edge: end, live: false, following: false, playing: false, speed: 1 };
}

// Moves on by `seconds` of wall time. Returns true if the position changed; stops at the end of a finished run.
export function advance(clock, seconds) {
  if (!clock.playing) return false;
  const before = clock.position;
  const limit = clock.live ? Math.min(clock.edge, clock.end) : clock.end;
  let rate = clock.speed * (clock.unit === "step" ? STEPS_PER_SECOND : 1);
  if (clock.following) rate = Math.max(rate, (limit - before) * CATCH_UP_PER_SECOND);
  const target = before + rate * Math.min(Math.max(seconds, 0), MAX_FRAME_SECONDS);
  clock.position = before > limit ? before : Math.min(limit, target);
  if (!clock.live && clock.position >= clock.end) clock.playing = false;
  return clock.position !== before;
}

export function seek(clock, position) {
  clock.position = Math.min(Math.max(position, 0), clock.end);
  clock.following = clock.live && clock.position >= clock.edge;
}

// Play from the end starts again; everything else goes on where it is.
export function play(clock) {
  if (!clock.live && clock.position >= clock.end) clock.position = 0;
  clock.playing = true;
}

export function pause(clock) {
  clock.playing = false;
  clock.following = false;
}

export function setSpeed(clock, speed) {
  if (SPEEDS.includes(speed)) clock.speed = speed;
}

// Another unit, the same moment: the caller says where that is.
export function setUnit(clock, unit, position, end, edge) {
  clock.unit = unit;
  clock.end = end;
  clock.edge = edge;
  clock.position = Math.min(Math.max(position, 0), end);
}

// The run has grown, or is over. Who followed its edge goes on following; nobody else is moved, unless the end fell.
export function setExtent(clock, end, edge, live) {
  const ended = clock.live && !live;
  clock.end = end;
  clock.edge = edge;
  clock.live = live;
  clock.position = Math.min(clock.position, end);
  if (clock.following && clock.position > edge) clock.position = edge; // the next policy's run has begun
  if (ended) clock.following = false;
}

// The first of sorted `stops` after the position (direction 1) or the last before it (-1); null if there is none.
export function nextStop(stops, position, direction) {
  const epsilon = 1e-9;
  if (direction > 0) {
    for (const stop of stops) if (stop > position + epsilon) return stop;
    return null;
  }
  for (let i = stops.length - 1; i >= 0; i--) if (stops[i] < position - epsilon) return stops[i];
  return null;
}
