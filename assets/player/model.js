// The payload, indexed for quick questions: who sat where, how many tokens by then, who waited.
// Owns: reading "batchviz-playback/1". Pure: no DOM; tests run this file in node. Must not know: the cursor, colours.

export const PHASE_NAMES = ["empty", "prefill", "decode", "held", "stalled"];
export const EVENT_KINDS = ["arrived", "rejected", "aborted", "admitted", "finished", "delivered"];
export const REASON_WORDS = {
  no_free_slot: "no free slot",
  group_running: "group running",
  group_filling: "group not full yet",
  token_budget: "token budget spent",
  kv_capacity: "no KV space",
  behind_head: "behind the one before",
};

// The last index whose value is ≤ `value` in a sorted array; -1 if there is none.
export function lastAtMost(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export function readPayload(payload) {
  const columns = payload.requests;
  const requests = columns.id.map((id, index) => ({
    index,
    id,
    letter: columns.letter[index],
    colour: columns.colour[index],
    prompt: columns.prompt[index],
    promptTokens: columns.num_prompt_tokens[index],
    maxTokens: columns.max_tokens[index],
  }));
  const panes = payload.panes.map(readPane);
  const unfinished = panes.filter((pane) => pane.status === "unfinished" && pane.numSteps > 0);
  const maxSteps = Math.max(0, ...panes.map((pane) => pane.numSteps));
  const growing = payload.live && unfinished.length > 0; // one run, or several that go on together
  return {
    runId: payload.run_id,
    content: payload.content,
    live: payload.live,
    title: payload.title,
    posterStep: Math.min(payload.poster_step, Math.max(0, maxSteps - 1)),
    requests,
    panes,
    narration: {
      joint: readSentences(payload.narration.joint),
      panes: payload.narration.panes.map(readSentences),
    },
    maxSteps,
    maxSeconds: Math.max(0, ...panes.map((pane) => pane.duration)),
    edgeStep: Math.max(0, ...(growing ? unfinished : panes).map((pane) => pane.numSteps - 1)),
    edgeSeconds: Math.max(0, ...(growing ? unfinished : panes).map((pane) => pane.duration)),
  };
}

function readSentences(rows) {
  return { steps: rows.map((row) => row[0]), weights: rows.map((row) => row[1]), parts: rows.map((row) => row[2]) };
}

function readPane(pane) {
  const numSteps = pane.num_steps;
  const slots = Array.from({ length: pane.num_slots }, () => ({ first: [], last: [], phase: [], request: [] }));
  const changes = PHASE_NAMES.map(() => new Int32Array(numSteps + 1));
  const spans = pane.spans;
  for (let i = 0; i < spans.slot.length; i++) {
    const slot = slots[spans.slot[i]];
    slot.first.push(spans.first[i]);
    slot.last.push(spans.last[i]);
    slot.phase.push(spans.phase[i]);
    slot.request.push(spans.request[i]);
    changes[spans.phase[i]][spans.first[i]] += 1;
    changes[spans.phase[i]][spans.last[i] + 1] -= 1;
  }
  const totals = changes.map((delta) => summed(summed(delta)));
  const tokens = pane.tokens.map(readTokens);
  const tokenDelta = new Int32Array(numSteps + 1);
  for (const { starts, counts } of tokens) {
    starts.forEach((start, i) => {
      tokenDelta[start] += 1;
      tokenDelta[start + counts[i]] -= 1;
    });
  }
  return {
    policy: pane.policy,
    label: pane.label,
    subtitle: pane.subtitle,
    numSlots: pane.num_slots,
    numSteps,
    status: pane.status,
    message: pane.message,
    seconds: pane.seconds,
    tokensFrom: pane.tokens_from,
    starts: pane.start_s,
    duration: pane.start_s[pane.start_s.length - 1] || 0,
    rows: pane.rows,
    slots,
    tokens,
    totals, // [phase][step]: slot-steps in that phase, up to and with this step
    reading: new Map(pane.reading.map(([request, steps, read]) => [request, { steps, read }])),
    longSteps: new Map(pane.long_steps.map(([step, seconds, times]) => [step, { seconds, times }])),
    tokenTotals: summed(summed(tokenDelta)),
    arrivalOrder: pane.arrival_order,
    headReasons: pane.head_reasons,
    events: pane.events,
  };
}

function summed(values) {
  const sums = new Int32Array(values.length);
  let sum = 0;
  for (let i = 0; i < values.length; i++) sums[i] = sum += values[i];
  return sums;
}

function readTokens({ runs, pieces }) {
  const starts = [];
  const counts = [];
  const before = []; // tokens before this run
  let total = 0;
  for (let i = 0; i < runs.length; i += 2) {
    starts.push(runs[i]);
    counts.push(runs[i + 1]);
    before.push(total);
    total += runs[i + 1];
  }
  return { starts, counts, before, total, pieces };
}

// How many tokens this request had at the end of `step`.
export function tokensBy(pane, request, step) {
  const tokens = pane.tokens[request];
  const run = lastAtMost(tokens.starts, step);
  if (run < 0) return 0;
  return tokens.before[run] + Math.min(tokens.counts[run], step - tokens.starts[run] + 1);
}

// How much of its prompt had been read by the end of `step`, where it is read in pieces; else null.
export function readBy(pane, request, step) {
  const reading = pane.reading.get(request);
  if (!reading) return null;
  const index = lastAtMost(reading.steps, step);
  return index < 0 ? 0 : reading.read[index];
}

// What a slot did in `step`: {phase, request, first, last}; null if nobody sat there.
export function spanAt(pane, slot, step) {
  const spans = pane.slots[slot];
  const index = lastAtMost(spans.first, step);
  if (index < 0 || spans.last[index] < step) return null;
  return { phase: spans.phase[index], request: spans.request[index], first: spans.first[index], last: spans.last[index] };
}

// Who waited in `step`, first come first.
export function waitingAt(pane, step) {
  const { arrived, admitted, aborted } = pane.rows;
  const waits = (r) =>
    arrived[r] !== null && arrived[r] <= step && !(admitted[r] !== null && admitted[r] <= step) &&
    !(aborted[r] !== null && aborted[r] <= step);
  return pane.arrivalOrder.filter(waits);
}

export function headReasonAt(pane, step) {
  const index = lastAtMost(pane.headReasons.step, step);
  return index < 0 ? null : pane.headReasons.reason[index];
}

// Answers at the end of `step`: finished and withheld, delivered, or ended without one; each the newest first.
export function answersAt(pane, step) {
  const { finished, delivered, aborted, rejected, reason } = pane.rows;
  const by = (at) => at !== null && at <= step;
  const withheld = [];
  const done = [];
  const gone = [];
  for (let r = 0; r < finished.length; r++) {
    if (by(delivered[r])) done.push(r);
    else if (by(rejected[r]) || by(aborted[r]) || (by(finished[r]) && reason[r] === "error")) gone.push(r);
    else if (by(finished[r])) withheld.push(r);
  }
  withheld.sort((a, b) => finished[b] - finished[a] || b - a);
  done.sort((a, b) => delivered[b] - delivered[a] || finished[b] - finished[a] || b - a);
  return { withheld, delivered: done, gone };
}

export function answerText(pane, request) {
  const { pieces } = pane.tokens[request];
  return pieces === null ? null : pieces.join("").trim();
}

// The step a pane is in at a position, and whether its run is over (or not computed yet) by then.
export function paneStepAt(pane, clock) {
  const step = clock.unit === "step" ? Math.floor(clock.position + 1e-9) : lastAtMost(pane.starts, clock.position + 1e-9);
  const last = pane.numSteps - 1;
  const over = step > last || (clock.unit === "time" && clock.position >= pane.duration && pane.numSteps > 0);
  return { step: Math.max(0, Math.min(step, last)), over, exists: pane.numSteps > 0 };
}

// Positions worth stopping at, sorted, in the clock's unit.
export function stopsOf(model, unit) {
  const stops = new Set();
  for (const pane of model.panes) for (const [step] of pane.events) stops.add(unit === "step" ? step : pane.starts[step]);
  return [...stops].sort((a, b) => a - b);
}
