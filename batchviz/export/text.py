"""Traces as text: a picture of slots × steps and what each user waited, for a terminal.

Owns: `to_text`. Must not know: terminals' abilities, colours, engines. Plain characters, so that it can be pasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType

from batchviz.metrics import RequestResult, request_results, run_metrics
from batchviz.phrases import exactness
from batchviz.prefill import PrefillMode
from batchviz.timeline import letter
from batchviz.trace import Fork, RunConfig, RunnerKind, Seconds, SlotPhase, Trace

PHASE_MARK = MappingProxyType({SlotPhase.HELD: "░", SlotPhase.EMPTY: "·", SlotPhase.STALLED: "-"})
PROVENANCE = MappingProxyType(
    {
        RunnerKind.MODEL: "tokens by the model, now",
        RunnerKind.RECORDED: "tokens recorded from the model",
        RunnerKind.SCRIPTED: "no model, lengths only",
    }
)


def to_text(traces: Sequence[Trace], width: int = 100) -> str:
    """Every run as a picture on the same scale, then the waits side by side. `width` is in characters."""
    if not traces:
        return "no runs\n"
    letters = {request.id: letter(i) for i, request in enumerate(traces[0].scenario.requests)}
    longest = max((len(trace.steps) for trace in traces), default=0)
    scale = max(-(-longest // max(width - 12, 20)), 1)
    parts = [_picture(trace, letters, scale) for trace in traces]
    stalled = any(slot.phase is SlotPhase.STALLED for trace in traces for step in trace.steps for slot in step.slots)
    legend = f"one column is {scale} step{'s' if scale > 1 else ''}; letter: working   ░ held   · empty"
    legend += "   - stalled" if stalled else ""
    origin = traces[0].origin
    if origin.model is not None:
        recorded = origin.runner is RunnerKind.RECORDED
        legend += f"\n{origin.model.name}, {origin.model.dtype}; {exactness(origin.model.exact, recorded=recorded)}"
    return "\n\n".join([*parts, legend, _waits(traces, letters)]) + "\n"


def _picture(trace: Trace, letters: dict[str, str], scale: int) -> str:
    metrics = run_metrics(trace)
    counted = metrics.slot_steps
    use = "–" if counted.utilization is None else f"{100 * counted.utilization:.1f} %"
    heading = (
        f"{trace.config.name} batching · {_count(trace.config.num_slots, 'slot')}{_settings(trace.config, trace.forks)} · "
        f"{_count(metrics.num_steps, 'step')} · {metrics.duration_s:.2f} s {trace.origin.seconds} · "
        f"{PROVENANCE[trace.origin.runner]}"
    )
    lines = [heading]
    for slot in range(trace.num_slots):
        cells = [
            _cell(trace, slot, range(start, min(start + scale, len(trace.steps))), letters)
            for start in range(0, len(trace.steps), scale)
        ]
        lines.append(f"  slot {slot:<3} {''.join(cells)}")
    lines.append(
        f"  slot-steps: {counted.working} working ({use}), {counted.held} held, {counted.empty} empty"
        + (f", {counted.stalled} stalled" if counted.stalled else "")
    )
    return "\n".join(lines)


def _settings(config: RunConfig, forks: Sequence[Fork] = ()) -> str:
    """What differs from a plain run."""
    parts = [f"{config.prefill} prefill" if config.prefill is not PrefillMode.MIXED else ""]
    parts.append(f"{config.max_batched_tokens:,} tokens a step" if config.max_batched_tokens is not None else "")
    parts.append(f"KV budget {config.kv_budget_tokens:,}" if config.kv_budget_tokens is not None else "")
    parts.append(f"groups wait up to {config.group_timeout:g}" if config.group_timeout else "")
    parts += [f"forked at step {fork.step} from {fork.before.policy}" for fork in forks]
    return "".join(f" · {part}" for part in parts if part)


def _cell(trace: Trace, slot: int, steps: range, letters: dict[str, str]) -> str:
    """The most frequent thing that the slot did in these steps, as one character."""
    marks = [_mark(trace, slot, step, letters) for step in steps]
    return max(dict.fromkeys(marks), key=marks.count)


def _mark(trace: Trace, slot: int, step: int, letters: dict[str, str]) -> str:
    slots = trace.steps[step].slots
    if slot >= len(slots):
        return " "  # this step was made with fewer slots
    shown = slots[slot]
    if shown.phase in PHASE_MARK:
        return PHASE_MARK[shown.phase]
    return letters[shown.request_id or ""][-1]


def _waits(traces: Sequence[Trace], letters: dict[str, str]) -> str:
    results = [request_results(trace) for trace in traces]
    widest = min(max((len(request.id) for request in traces[0].scenario.requests), default=2), 24)
    columns = [f"{trace.config.name} ({trace.config.num_slots})" for trace in traces]
    lines = ["what each user waited, in steps (and seconds), until the answer was delivered"]
    lines.append(f"     {'request':<{widest}}  tokens  " + "  ".join(f"{column:>20}" for column in columns))
    for row in zip(*results, strict=True):
        request = row[0].request
        cells = [f"{_wait(result):>20}" for result in row]
        tokens = max(result.num_output_tokens for result in row)
        lines.append(f"  {letters[request.id]:<2} {_fit(request.id, widest)}  {tokens:>6}  " + "  ".join(cells))
    means = [run_metrics(trace, result) for trace, result in zip(traces, results, strict=True)]
    shown = [f"{_steps(metric.mean_e2e_steps)} ({_seconds(metric.mean_e2e_s)})" for metric in means]
    lines.append(f"     {'mean':<{widest}}          " + "  ".join(f"{text:>20}" for text in shown))
    lines.extend(_ratios(traces, [metric.mean_e2e_steps for metric in means]))
    if len({trace.origin.seconds for trace in traces}) == 1:
        kind = (
            "measured on the machine"
            if traces[0].origin.seconds is Seconds.MEASURED
            else "modelled from the rows of each step"
        )
        lines.append(f"steps are counted; seconds are {kind}")
    return "\n".join(lines)


def _ratios(traces: Sequence[Trace], waits: Sequence[float | None]) -> list[str]:
    lines = []
    for (one, one_wait), (other, other_wait) in pairwise(zip(traces, waits, strict=True)):
        if one_wait and other_wait and other.steps:
            lines.append(
                f"{one.config.policy} against {other.config.policy}: {len(one.steps) / len(other.steps):.2f}× the steps, "
                f"{one_wait / other_wait:.2f}× the mean wait"
            )
    return lines


def _wait(result: RequestResult) -> str:
    if result.e2e_steps is None:
        return result.finish_reason or "not delivered"
    return f"{_steps(result.e2e_steps)} ({_seconds(result.e2e_s)})"


def _steps(value: float | None) -> str:
    return "–" if value is None else f"{value:g}" if value == int(value) else f"{value:.1f}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _fit(text: str, width: int) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown.ljust(width) if len(shown) <= width else shown[: width - 1] + "…"
