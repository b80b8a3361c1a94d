// The player: one clock, several panes, one animation loop.
// Owns: the state of one player on the page, and when Python hears of it. Must not know: Streamlit, how parts draw.

import { newClock, advance, seek, play, pause, setSpeed, setUnit, setExtent, nextStop } from "./clock.js";
import { readPayload, stopsOf, lastAtMost } from "./model.js";
import { newPane, bodyHeight } from "./pane.js";
import { newTelling } from "./telling.js";
import { newControls } from "./controls.js";
import { readPalette } from "./palette.js";

const TELL_AFTER_MS = 250; // a held-down key is one message, not fifty
const FAST_SPEED = 4; // from here on nobody reads single steps: the page is redrawn 25 times a second
const FAST_FRAME_MS = 40;

// `root` is the element of player.html. Nobody hears of anything before `tellTo`.
export function newPlayer(root) {
  const clock = newClock(0);
  const panesHolder = root.querySelector('[data-part="panes"]');
  const line = root.querySelector('[data-part="telling"]');
  const spoken = root.querySelector('[data-part="spoken"]');
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let model = null;
  let panes = [];
  let telling = () => {};
  let palette = null;
  let themeKey = 0;
  let lastSeek = 0;
  let lastFrame = 0;
  let lastDraw = 0;
  let frame = 0;
  let timer = 0;
  let told = null;
  let resume = false;
  let isDragged = false;
  let pending = null; // a payload that came while somebody dragged
  let tellStep = null;
  let tellSpeed = null;
  let chosenSpeed = null; // by a person, before anybody was told

  const unitEnd = () => (clock.unit === "step" ? Math.max(0, model.maxSteps - 1) : model.maxSeconds);
  const unitEdge = () => (clock.unit === "step" ? model.edgeStep : model.edgeSeconds);
  // The pane that goes on longest: a step means its step, when panes are not at the same one.
  const reference = () => model.panes.reduce((best, pane) => (pane.duration > best.duration ? pane : best), model.panes[0]);
  const stepNow = () =>
    clock.unit === "step" ? Math.floor(clock.position + 1e-9) : Math.max(0, Math.min(reference().numSteps - 1, lastAtMost(reference().starts, clock.position + 1e-9)));
  const positionOf = (step) => (clock.unit === "step" ? step : reference().starts[Math.min(step, reference().numSteps)] || 0);

  function draw(now) {
    if (!model || !model.panes.length) return;
    const playing = clock.playing && !calm.matches && clock.speed <= 8;
    const steps = panes.map((pane) => pane.show(clock, playing, themeKey));
    telling(clock.unit === "step" ? [Math.floor(clock.position + 1e-9)] : steps, clock.unit, clock.playing, now);
    showControls(clock, stepNow(), model.maxSteps);
  }

  function loop(now) {
    frame = 0;
    const seconds = lastFrame ? (now - lastFrame) / 1000 : 0;
    lastFrame = now;
    const wasPlaying = clock.playing;
    advance(clock, seconds);
    const isFast = clock.playing && clock.speed >= FAST_SPEED;
    if (!isFast || now - lastDraw >= FAST_FRAME_MS) {
      lastDraw = now;
      draw(now);
    }
    if (wasPlaying && !clock.playing) rest();
    if (clock.playing) request();
    else lastFrame = 0;
  }

  function request() {
    if (!frame) frame = requestAnimationFrame(loop);
  }

  function rest() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (!model || !tellStep || told === stepNow()) return;
      told = stepNow();
      tellStep(told);
    }, TELL_AFTER_MS);
  }

  function goTo(position) {
    seek(clock, position);
    request();
  }

  function stop() {
    pause(clock);
    resume = false;
  }

  function stepBy(count) {
    stop();
    const last = Math.max(0, model.maxSteps - 1);
    let step = stepNow() + count;
    while (step > 0 && step < last && positionOf(step) === clock.position) step += count; // idle steps take no time
    goTo(positionOf(Math.max(0, Math.min(last, step))));
    rest();
  }

  function toStop(direction) {
    stop();
    const stops = stopsOf(model, clock.unit);
    const position = clock.unit === "step" ? Math.floor(clock.position) : clock.position;
    goTo(nextStop(stops, position, direction) ?? (direction > 0 ? clock.end : 0));
    rest();
  }

  const actions = {
    toggle() {
      if (clock.playing) {
        stop();
        rest();
      } else {
        play(clock);
      }
      request();
    },
    forward: () => stepBy(1),
    back: () => stepBy(-1),
    start: () => {
      goTo(0);
      rest();
    },
    end: () => {
      if (clock.live) play(clock);
      else stop();
      goTo(clock.live ? clock.edge : clock.end);
      rest();
    },
    nextEvent: () => toStop(1),
    previousEvent: () => toStop(-1),
    speed(value) {
      setSpeed(clock, value);
      if (tellSpeed) tellSpeed(clock.speed);
      else chosenSpeed = clock.speed;
      request();
    },
    unit(value) {
      const step = stepNow();
      clock.unit = value === "time" ? "time" : "step";
      setUnit(clock, clock.unit, positionOf(step), unitEnd(), unitEdge());
      request();
    },
    scrub(value) {
      stop();
      goTo(value);
    },
    scrubEnd: rest,
  };
  const showControls = newControls(root, actions);

  function buildPanes() {
    panes = model.panes.map((pane) => newPane(model, pane, () => palette));
    root.style.setProperty("--body-h", `${bodyHeight(model)}px`);
    panesHolder.style.setProperty("--panes", String(Math.max(1, panes.length)));
    panesHolder.replaceChildren(...panes.map((pane) => pane.root));
    telling = newTelling(line, spoken, model);
    watcher.disconnect();
    for (const pane of panes) {
      dragOn(pane);
      watcher.observe(pane.mapBox);
    }
  }

  // While somebody drags, what came from a live run waits: new panes would take the pointer's hold away.
  function dragOn({ mapBox, map }) {
    mapBox.onpointerdown = (event) => {
      isDragged = true;
      mapBox.setPointerCapture(event.pointerId);
      actions.scrub(map.positionAt(event.clientX, clock.unit));
    };
    mapBox.onpointermove = (event) => {
      if (mapBox.hasPointerCapture(event.pointerId)) actions.scrub(map.positionAt(event.clientX, clock.unit));
    };
    mapBox.onlostpointercapture = () => {
      isDragged = false;
      if (pending) load(pending);
      rest();
    };
  }

  const onVisibility = () => {
    if (document.hidden && clock.playing) {
      resume = true;
      clock.playing = false;
    } else if (!document.hidden && resume) {
      resume = false;
      lastFrame = 0;
      clock.playing = true;
      request();
    }
  };
  document.addEventListener("visibilitychange", onVisibility);
  const watcher = new ResizeObserver((entries) => {
    for (const entry of entries) entry.target.shownWidth = entry.contentRect.width;
    request();
  });

  function load(payload) {
    pending = isDragged ? payload : null;
    if (isDragged) return;
    if (model && payload.run_id === model.runId && payload.content === model.content) return;
    const isNew = !model || payload.run_id !== model.runId;
    model = readPayload(payload);
    root.classList.toggle("nothing", !model.panes.length || model.maxSteps === 0);
    root.classList.toggle("some-long", model.panes.some((pane) => pane.longSteps.size > 0));
    buildPanes();
    setExtent(clock, unitEnd(), unitEdge(), model.live);
    if (isNew) {
      told = null;
      clock.position = 0;
      if (model.live) seek(clock, unitEdge());
      clock.playing = !calm.matches;
      clock.following = model.live && clock.playing;
      if (calm.matches && !model.live) seek(clock, positionOf(model.posterStep));
      if (document.hidden && clock.playing) onVisibility();
    }
    request();
  }

  return {
    // A payload: another run starts over, the same run (grown, or scheduled anew) keeps the cursor where it is.
    load,
    // `onStep(step)` is called when the cursor has come to rest, never per frame; `onSpeed(speed)` when a person chose one.
    tellTo(onStep, onSpeed) {
      tellStep = onStep;
      tellSpeed = onSpeed;
      if (chosenSpeed !== null) tellSpeed(chosenSpeed);
      if (model && !clock.playing) rest();
    },
    // Python moves the cursor only by a number that grows: {n, step, speed?, play?}; without a step it stays where it is.
    seek(wish) {
      if (!wish || !model || !(wish.n > lastSeek)) return;
      lastSeek = wish.n;
      if (wish.speed) setSpeed(clock, wish.speed);
      request();
      if (wish.step === null) return;
      stop();
      goTo(positionOf(Math.min(wish.step, model.maxSteps - 1)));
      told = stepNow();
      if (wish.play) play(clock);
    },
    // A page of its own opens: at a step, where it stands unless it is to play; null is as usual. Who wants no motion
    // is spared it.
    open(wish) {
      if (!model) return;
      if (wish.speed !== null) setSpeed(clock, wish.speed);
      if (wish.step !== null || wish.play === false) stop();
      if (wish.step !== null) seek(clock, positionOf(Math.min(wish.step, Math.max(0, model.maxSteps - 1))));
      if (wish.play && !calm.matches) play(clock);
      if (document.hidden) onVisibility();
      request();
    },
    refreshTheme(atOnce = false) {
      palette = readPalette(root);
      if (palette.key === themeKey) return;
      themeKey = palette.key;
      if (atOnce) draw(performance.now());
      else request();
    },
    destroy() {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      watcher.disconnect();
      document.removeEventListener("visibilitychange", onVisibility);
    },
  };
}
