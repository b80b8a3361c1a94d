"""Traces as series over the steps: what the charts under the player show, and the same in words.

Owns: `Bucket`, `buckets`, and the rows of each chart. Must not know: charts, pages, colours. A long run is shown in
equal buckets of steps, each with the mean of its steps, so that a chart has at most MAX_POINTS of them; the table
beside it says how many steps a bucket has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from batchviz.export.tables import Row, run_label
from batchviz.kv_metrics import kv_steps, kv_totals
from batchviz.metrics import request_results, run_metrics
from batchviz.trace import SlotPhase, Trace

MAX_POINTS = 400
MAX_TOKEN_POINTS = 80  # tokens per second jump from step to step: shown in fewer, wider buckets
PHASE_WORDS: Mapping[SlotPhase, str] = MappingProxyType(
    {
        SlotPhase.PREFILL: "prefill",
        SlotPhase.DECODE: "decode",
        SlotPhase.STALLED: "stalled",
        SlotPhase.HELD: "held, answer finished",
        SlotPhase.EMPTY: "empty",
    }
)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Some steps in a row, added up: everything but `step`, the first of them, is a sum over `num_steps` steps."""

    step: int
    num_steps: int
    phases: Mapping[SlotPhase, int]  # slot-steps
    waiting: int
    tokens: int  # output tokens
    seconds: float
    kv_used: int  # KV positions that hold a token at the end of a step
    kv_reserved: int  # KV positions kept for whoever sits in a slot: prompt + the most output tokens


def bucket_size(traces: Sequence[Trace], max_points: int = MAX_POINTS) -> int:
    """Steps in a bucket, the same in every run, so that runs can be held against each other."""
    longest = max((len(trace.steps) for trace in traces), default=0)
    return max(-(-longest // max_points), 1)


def buckets(trace: Trace, size: int) -> list[Bucket]:
    """The whole run in buckets of `size` steps; the last one may be shorter."""
    kv = tuple(kv_steps(trace))
    found = []
    for start in range(0, len(trace.steps), size):
        steps = trace.steps[start : start + size]
        phases = dict.fromkeys(SlotPhase, 0)
        tokens = 0
        for snapshot in steps:
            for slot in snapshot.slots:
                phases[slot.phase] += 1
                tokens += slot.token_id is not None
        memory = kv_totals(trace, kv[start : start + size])
        waiting = sum(snapshot.num_waiting for snapshot in steps)
        seconds = sum(snapshot.duration_s for snapshot in steps)
        found.append(Bucket(start, len(steps), phases, waiting, tokens, seconds, memory.used, memory.reserved))
    return found


def phase_rows(traces: Sequence[Trace], pane: int) -> list[Row]:
    """Slots by what they did: one row a bucket and phase, the mean number of slots; and a closing row a phase."""
    return [
        {"step": step, "phase": PHASE_WORDS[phase], "order": order, "slots": bucket.phases[phase] / bucket.num_steps}
        for step, bucket in _closed(traces, pane)
        for order, phase in enumerate(PHASE_WORDS)
    ]


def queue_rows(traces: Sequence[Trace]) -> list[Row]:
    """Who waits: one row a run and bucket, the mean length of the queue."""
    return [
        {"run": run_label(pane, trace), "pane": pane, "step": step, "waiting": bucket.waiting / bucket.num_steps}
        for pane, trace in enumerate(traces)
        for step, bucket in _closed(traces, pane)
    ]


def token_rows(traces: Sequence[Trace]) -> list[Row]:
    """Output tokens per second: one row a run and bucket, its tokens over its seconds."""
    return [
        {"run": run_label(pane, trace), "pane": pane, "step": step, "tokens": bucket.tokens / bucket.seconds}
        for pane, trace in enumerate(traces)
        for step, bucket in _closed(traces, pane, MAX_TOKEN_POINTS)
        if bucket.seconds > 0
    ]


def kv_rows(traces: Sequence[Trace], pane: int) -> list[Row]:
    """KV positions: filled, and reserved without being filled; one row a bucket and kind, and a closing row a kind."""
    return [
        {"step": step, "kind": kind, "order": order, "positions": positions / bucket.num_steps}
        for step, bucket in _closed(traces, pane)
        for order, (kind, positions) in enumerate(
            (("used", bucket.kv_used), ("reserved and unused", bucket.kv_reserved - bucket.kv_used))
        )
    ]


def share_rows(traces: Sequence[Trace]) -> list[Row]:
    """The distribution of waits: after so many steps, this share of the delivered answers was with its user."""
    rows: list[Row] = []
    for pane, trace in enumerate(traces):
        waits = sorted(result.e2e_steps for result in request_results(trace) if result.e2e_steps is not None)
        run = run_label(pane, trace)
        rows.append({"run": run, "pane": pane, "wait": 0, "share": 0.0})
        rows.extend(
            {"run": run, "pane": pane, "wait": wait, "share": number / len(waits)}
            for number, wait in enumerate(waits, start=1)
        )
    return rows


def step_rows(traces: Sequence[Trace]) -> list[Row]:
    """The numbers behind all these charts as one table: one row a run and bucket."""
    size = bucket_size(traces)
    return [
        {
            "run": run_label(pane, trace),
            "step": bucket.step,
            "steps": bucket.num_steps,
            **{f"{PHASE_WORDS[phase]} slots": bucket.phases[phase] / bucket.num_steps for phase in PHASE_WORDS},
            "waiting": bucket.waiting / bucket.num_steps,
            "output tokens": bucket.tokens,
            "seconds": bucket.seconds,
            "KV used": bucket.kv_used / bucket.num_steps,
            "KV reserved": bucket.kv_reserved / bucket.num_steps,
        }
        for pane, trace in enumerate(traces)
        for bucket in buckets(trace, size)
    ]


def requests_in_words(traces: Sequence[Trace], pane: int) -> str:
    """The chart of one run's requests, said."""
    results = request_results(traces[pane])
    waits = sorted(result.queue_steps for result in results if result.queue_steps is not None)
    withheld = sum(result.withheld_steps or 0 for result in results)
    waited = sum(wait > 0 for wait in waits)
    return (
        f"{run_label(pane, traces[pane])}: {waited} of {len(results)} requests wait in the queue, at most "
        f"{max(waits, default=0):,} steps; finished answers are withheld for {withheld:,} steps altogether."
    )


def phases_in_words(traces: Sequence[Trace], pane: int) -> str:
    """The chart of one run's slot-steps, said."""
    counted = run_metrics(traces[pane]).slot_steps
    shares = [
        f"{count:,} {PHASE_WORDS[phase]}"
        for phase, count in ((phase, getattr(counted, phase.value)) for phase in PHASE_WORDS)
        if count
    ]
    return f"{run_label(pane, traces[pane])}: of {counted.total:,} slot-steps {', '.join(shares) or 'none'}."


def queue_in_words(traces: Sequence[Trace]) -> str:
    """The chart of the queues, said."""
    said = []
    for pane, trace in enumerate(traces):
        lengths = [snapshot.num_waiting for snapshot in trace.steps]
        until = next((step for step in range(len(lengths) - 1, -1, -1) if lengths[step]), None)
        end = "nobody ever waits" if until is None else f"at most {max(lengths):,} wait, the last until step {until:,}"
        said.append(f"{run_label(pane, trace)}: {end}.")
    return " ".join(said)


def tokens_in_words(traces: Sequence[Trace]) -> str:
    """The chart of tokens per second, said."""
    said = []
    for pane, trace in enumerate(traces):
        metrics = run_metrics(trace)
        speed = "no time" if metrics.throughput_tok_s is None else f"{metrics.throughput_tok_s:.1f} a second"
        tokens = f"{metrics.num_output_tokens:,} output tokens in {metrics.duration_s:.2f} s {trace.origin.seconds}"
        said.append(f"{run_label(pane, trace)}: {tokens}, {speed}.")
    return " ".join(said)


def kv_in_words(traces: Sequence[Trace], pane: int) -> str:
    """The chart of one run's KV memory, said."""
    memory = kv_totals(traces[pane])
    peaks = f"at most {memory.peak_used:,} KV positions used and {memory.peak_reserved:,} reserved"
    return f"{run_label(pane, traces[pane])}: {peaks}."


def waits_in_words(traces: Sequence[Trace]) -> str:
    """The distribution of waits, said."""
    said = []
    for pane, trace in enumerate(traces):
        waits = sorted(result.e2e_steps for result in request_results(trace) if result.e2e_steps is not None)
        spread = "nothing was delivered"
        if waits:
            half, most = waits[(len(waits) - 1) // 2], waits[-1]
            spread = f"half of {len(waits):,} answers are there within {half:,} steps, all within {most:,}"
        said.append(f"{run_label(pane, trace)}: {spread}.")
    return " ".join(said)


def _closed(traces: Sequence[Trace], pane: int, max_points: int = MAX_POINTS) -> list[tuple[int, Bucket]]:
    """Every bucket at its first step, and the last one again at the run's end, so that its last stretch is drawn."""
    found = [(bucket.step, bucket) for bucket in buckets(traces[pane], bucket_size(traces, max_points))]
    return [*found, (len(traces[pane].steps), found[-1][1])] if found else []
