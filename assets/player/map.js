// The whole run at a glance: slots are rows, steps run left to right, the cursor is where we are.
// Owns: one canvas per pane, drawn once per run and size; the cursor and what is yet to come lie over it. Must not know: lanes, playing.
// All panes share one horizontal scale, so a longer run is visibly longer.

import { element } from "./dom.js";
import { PHASE_NAMES, EVENT_KINDS } from "./model.js";

const TICKS_H = 9;
const AXIS_H = 16;
const PHASE_PREFILL = 1;
const PHASE_HELD = 3;
const PHASE_STALLED = 4;

export function mapRowHeight(numSlots) {
  return numSlots <= 4 ? 13 : numSlots <= 8 ? 9 : numSlots <= 16 ? 6 : numSlots <= 32 ? 4 : 2;
}

export function newMap(box, model, pane, palette) {
  const canvas = element("canvas");
  canvas.setAttribute("role", "img");
  const future = element("span", "map-future");
  const cursor = element("span", "map-cursor");
  box.append(canvas, future, cursor);
  const rowHeight = mapRowHeight(pane.numSlots);
  const height = TICKS_H + rowHeight * pane.numSlots + AXIS_H;
  let width = 0;
  let scale = 1;
  let drawnFor = "";
  let shownShare = -1;
  canvas.style.height = `${height}px`;
  future.style.cssText = `top:${TICKS_H}px;height:${rowHeight * pane.numSlots}px`;
  cursor.style.height = `${TICKS_H + rowHeight * pane.numSlots + 3}px`;
  canvas.setAttribute("aria-label", mapLabel(pane));

  const extent = (unit) => (unit === "step" ? Math.max(1, model.maxSteps) : Math.max(1e-9, model.maxSeconds));
  const place = (step, unit) => (unit === "step" ? step : pane.starts[Math.min(step, pane.numSteps)]);

  function drawBase(unit) {
    const ink = palette();
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const x = (step) => (place(step, unit) / extent(unit)) * width;
    pen.fillStyle = ink.track;
    pen.fillRect(0, TICKS_H, x(pane.numSteps), rowHeight * pane.numSlots);
    const hatch = pen.createPattern(hatchTile(ink, scale), "repeat");
    hatch.setTransform(new DOMMatrix([1 / scale, 0, 0, 1 / scale, 0, 0]));
    pane.slots.forEach((spans, slot) => {
      const top = TICKS_H + slot * rowHeight;
      const inner = rowHeight > 3 ? rowHeight - 1 : rowHeight;
      for (let i = 0; i < spans.first.length; i++) {
        const left = x(spans.first[i]);
        const wide = Math.max(0.75, x(spans.last[i] + 1) - left);
        const phase = spans.phase[i];
        const request = model.requests[spans.request[i]];
        pen.globalAlpha = phase === PHASE_STALLED ? 0.35 : 1;
        pen.fillStyle = phase === PHASE_HELD ? hatch : ink.colours[request.colour];
        pen.fillRect(left, top, wide, inner);
        pen.globalAlpha = 1;
        if (phase === PHASE_PREFILL && rowHeight > 3) {
          pen.fillStyle = ink.paper;
          pen.fillRect(left, top, 1, inner);
        }
        if (rowHeight >= 9 && phase !== PHASE_HELD && phase !== PHASE_PREFILL && wide > 13) {
          pen.font = `700 ${Math.min(10, rowHeight - 1)}px ${ink.font}`;
          pen.textBaseline = "middle";
          pen.fillStyle = ink.inks[request.colour];
          pen.fillText(request.letter, left + 4, top + inner / 2 + 0.5);
        }
      }
    });
    drawLong(pen, ink, x, unit);
    drawTicks(pen, ink, x);
    drawAxis(pen, ink, unit);
    drawEnd(pen, ink, x, unit);
  }

  // A step that took unusually long: a line down the whole map, since all slots were in it.
  function drawLong(pen, ink, x, unit) {
    pen.fillStyle = ink.warn;
    for (const [step, { seconds }] of pane.longSteps) {
      const wide = Math.max(3, unit === "step" ? x(step + 1) - x(step) : (seconds / extent(unit)) * width);
      pen.globalAlpha = 0.35;
      pen.fillRect(x(step), TICKS_H, wide, rowHeight * pane.numSlots);
      pen.globalAlpha = 1;
      pen.fillRect(x(step), TICKS_H + rowHeight * pane.numSlots, wide, 3);
    }
  }

  function drawTicks(pen, ink, x) {
    for (const [step, kind, request] of pane.events) {
      const name = EVENT_KINDS[kind];
      pen.fillStyle = ink.colours[model.requests[request].colour];
      if (name === "admitted") {
        const at = x(step);
        pen.beginPath();
        pen.moveTo(at - 3, 1);
        pen.lineTo(at + 3, 1);
        pen.lineTo(at, 7);
        pen.fill();
      } else if (name === "finished") {
        pen.fillRect(x(step + 1) - 1, 1, 2, 6);
      }
    }
  }

  function drawAxis(pen, ink, unit) {
    const rough = extent(unit) / Math.max(2, width / 90);
    const power = 10 ** Math.floor(Math.log10(rough));
    const every = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) || power * 10;
    const whole = unit === "step" ? Math.max(1, every) : every;
    const digits = unit === "step" || whole >= 1 ? 0 : Math.ceil(-Math.log10(whole));
    pen.font = `10px ${ink.font}`;
    pen.textBaseline = "alphabetic";
    pen.fillStyle = ink.faint;
    const bottom = TICKS_H + rowHeight * pane.numSlots;
    for (let value = 0; value <= extent(unit); value += whole) {
      const at = (value / extent(unit)) * width;
      pen.fillRect(at, bottom, 1, 3);
      const label = value === 0 ? (unit === "step" ? "step 0" : "0 s") : unit === "step" ? String(value) : `${value.toFixed(digits)} s`;
      if (at + pen.measureText(label).width < width) pen.fillText(label, value === 0 ? 0 : at + 3, height - 3);
    }
  }

  function drawEnd(pen, ink, x, unit) {
    const at = x(pane.numSteps);
    if (at > width - 70 || pane.numSteps === 0) return;
    const word = pane.status === "complete" ? "done" : pane.status === "unfinished" ? "…" : pane.status;
    pen.font = `600 11px ${ink.font}`;
    pen.textBaseline = "middle";
    pen.fillStyle = ink.soft;
    const amount = unit === "step" ? `${pane.numSteps} steps` : `${pane.duration.toFixed(1)} s`;
    pen.fillText(word === "done" ? `done: ${amount}` : word, at + 8, TICKS_H + (rowHeight * pane.numSlots) / 2);
  }

  return {
    // Draws if anything differs. `position` is in the clock's unit.
    draw(position, unit, themeKey) {
      const nowWidth = box.shownWidth || 0; // set by a ResizeObserver: asking the page here would cost a layout a frame
      if (!nowWidth) return;
      const nowScale = window.devicePixelRatio || 1;
      const key = `${nowWidth}|${nowScale}|${unit}|${themeKey}`;
      if (key !== drawnFor) {
        width = nowWidth;
        scale = nowScale;
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
        drawBase(unit);
        drawnFor = key;
        shownShare = -1;
      }
      const whole = unit === "step" ? Math.floor(position + 1e-9) + 1 : position;
      const share = Math.min(1, Math.max(whole, 0) / extent(unit));
      if (share === shownShare) return;
      shownShare = share;
      future.style.transform = `scaleX(${1 - share})`;
      cursor.style.transform = `translateX(${Math.min(nowWidth - 2, Math.max(0, share * nowWidth - 1))}px)`;
    },
    positionAt(clientX, unit) {
      const bounds = canvas.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (clientX - bounds.left) / (bounds.width || 1)));
      return unit === "step" ? Math.floor(share * extent(unit) * 0.999999) : share * extent(unit);
    },
  };
}

function hatchTile(ink, scale) {
  const size = Math.max(6, Math.round(6 * scale));
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  pen.fillStyle = ink.heldPaper;
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = ink.heldLine;
  pen.lineWidth = size / 4;
  for (const shift of [-size, 0, size]) {
    pen.beginPath();
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
    pen.stroke();
  }
  return tile;
}

function mapLabel(pane) {
  const last = pane.numSteps - 1;
  const amounts = PHASE_NAMES.slice(1).map((name, i) => `${last < 0 ? 0 : pane.totals[i + 1][last]} ${name}`);
  return `Map of the whole run, ${pane.label}: ${pane.numSlots} slots, ${pane.numSteps} steps; slot-steps: ${amounts.join(", ")}. Click to go to a step.`;
}
