"""Trace -> numbers. Every figure on the screen, in the terminal and in JSON is computed here, once.

Owns: RequestResult, SlotSteps, RunMetrics. Must not know: engines, pages, formats.
TTFT, ITL and TPOT speak of production, E2E of delivery (vLLM's definitions; `docs/design/metrics.md` there).
In steps a wait ends with its step: E2E = delivered_step - arrival + 1. Aborted, rejected and failed requests are left
out of every mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from batchviz.request import FinishReason
from batchviz.trace import ArrivalUnit, RunnerKind, SlotPhase, Trace, TracedRequest


class SlotSteps(NamedTuple):
    """One slot during one step, counted by what it did. The five add up to slots × steps."""

    prefill: int
    decode: int
    stalled: int
    held: int
    empty: int

    @property
    def working(self) -> int:
        return self.prefill + self.decode

    @property
    def total(self) -> int:
        return sum(self)

    @property
    def utilization(self) -> float | None:
        """Working slot-steps over all slot-steps, 0 to 1; None in a run without steps."""
        return self.working / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class RequestResult:
    """What became of one request. A step is None if it never came to it; seconds are the trace's own."""

    request: TracedRequest
    arrival_step: int | None = None  # the step in which it joined the queue
    arrival_s: float | None = None  # its arrival, where that is in seconds, else the start of that step
    slot: int | None = None
    admitted_step: int | None = None
    first_token_step: int | None = None
    finished_step: int | None = None
    delivered_step: int | None = None
    token_times_s: tuple[float, ...] = ()  # the end of the step each output token came out of
    admitted_s: float | None = None
    delivered_s: float | None = None
    finish_reason: FinishReason | None = None
    output: str | None = None

    @property
    def counts(self) -> bool:
        """True if it is part of the means: answered and delivered."""
        return self.delivered_step is not None

    @property
    def num_output_tokens(self) -> int:
        return len(self.token_times_s)

    @property
    def queue_steps(self) -> int | None:
        """Admitted - arrival, in steps."""
        if self.admitted_step is None or self.arrival_step is None:
            return None
        return self.admitted_step - self.arrival_step

    @property
    def ttft_steps(self) -> int | None:
        """First token - arrival, in steps, the step itself included."""
        if self.first_token_step is None or self.arrival_step is None:
            return None
        return self.first_token_step - self.arrival_step + 1

    @property
    def e2e_steps(self) -> int | None:
        """Delivered - arrival, in steps, the step itself included: what the user waited."""
        if self.delivered_step is None or self.arrival_step is None:
            return None
        return self.delivered_step - self.arrival_step + 1

    @property
    def finished_steps(self) -> int | None:
        """Finished - arrival, in steps, the step itself included: when the answer existed."""
        if self.finished_step is None or self.arrival_step is None:
            return None
        return self.finished_step - self.arrival_step + 1

    @property
    def withheld_steps(self) -> int | None:
        """Delivered - finished: how long a finished answer was kept from its user."""
        if self.delivered_step is None or self.finished_step is None:
            return None
        return self.delivered_step - self.finished_step

    @property
    def withheld_s(self) -> float | None:
        """Delivered - last token, in seconds: how long a finished answer was kept from its user."""
        return (
            self.delivered_s - self.token_times_s[-1] if self.delivered_s is not None and self.token_times_s else None
        )

    @property
    def ttft_s(self) -> float | None:
        """First token - arrival, in seconds."""
        return self.token_times_s[0] - self.arrival_s if self.token_times_s and self.arrival_s is not None else None

    @property
    def e2e_s(self) -> float | None:
        """Delivered - arrival, in seconds."""
        return (
            self.delivered_s - self.arrival_s if self.delivered_s is not None and self.arrival_s is not None else None
        )

    @property
    def queue_s(self) -> float | None:
        """Admitted - arrival, in seconds."""
        return self.admitted_s - self.arrival_s if self.admitted_s is not None and self.arrival_s is not None else None

    @property
    def itl_s(self) -> tuple[float, ...]:
        """The gaps between neighbouring tokens, in seconds."""
        return tuple(b - a for a, b in zip(self.token_times_s, self.token_times_s[1:], strict=False))

    @property
    def tpot_s(self) -> float | None:
        """(Last token - first token) / (n - 1), in seconds; None for fewer than two tokens."""
        times = self.token_times_s
        return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The figures of one run. A mean over nobody is None."""

    num_steps: int
    duration_s: float
    slot_steps: SlotSteps
    num_output_tokens: int
    throughput_tok_s: float | None  # output tokens / duration
    slot_utilization: float | None
    mean_e2e_steps: float | None
    max_e2e_steps: float | None
    mean_finished_steps: float | None
    mean_e2e_s: float | None
    mean_ttft_steps: float | None
    mean_ttft_s: float | None
    mean_tpot_s: float | None
    mean_queue_steps: float | None
    mean_withheld_steps: float | None
    mean_queue_s: float | None
    mean_withheld_s: float | None
    max_e2e_s: float | None


def slot_steps(trace: Trace) -> SlotSteps:
    """Counts every slot-step of the run by its phase."""
    count = dict.fromkeys(SlotPhase, 0)
    for snapshot in trace.steps:
        for slot in snapshot.slots:
            count[slot.phase] += 1
    return SlotSteps(
        prefill=count[SlotPhase.PREFILL],
        decode=count[SlotPhase.DECODE],
        stalled=count[SlotPhase.STALLED],
        held=count[SlotPhase.HELD],
        empty=count[SlotPhase.EMPTY],
    )


def request_results(trace: Trace) -> tuple[RequestResult, ...]:
    """What became of every request, in the scenario's order."""
    results = {request.id: RequestResult(request) for request in trace.scenario.requests}
    times: dict[str, list[float]] = {request_id: [] for request_id in results}
    pieces: dict[str, list[str]] = {request_id: [] for request_id in results}
    in_seconds = trace.scenario.arrival_unit is ArrivalUnit.SECONDS
    for snapshot in trace.steps:
        for request_id in snapshot.arrived:
            arrival_s = results[request_id].request.arrival if in_seconds else snapshot.start_s
            results[request_id] = replace(results[request_id], arrival_step=snapshot.step, arrival_s=arrival_s)
        for rejection in snapshot.rejected:
            results[rejection.request_id] = replace(results[rejection.request_id], finish_reason=FinishReason.REJECTED)
        for request_id in snapshot.aborted:
            if results[request_id].finish_reason is None:
                results[request_id] = replace(results[request_id], finish_reason=FinishReason.ABORT)
        for admission in snapshot.admitted:
            results[admission.request_id] = replace(
                results[admission.request_id],
                slot=admission.slot,
                admitted_step=snapshot.step,
                admitted_s=snapshot.start_s,
            )
        for slot in snapshot.slots:
            if slot.token_id is not None and slot.request_id is not None:
                if not times[slot.request_id]:
                    results[slot.request_id] = replace(results[slot.request_id], first_token_step=snapshot.step)
                times[slot.request_id].append(snapshot.end_s)
                pieces[slot.request_id].append(slot.text or "")
        for finish in snapshot.finished:
            results[finish.request_id] = replace(
                results[finish.request_id], finished_step=snapshot.step, finish_reason=finish.reason
            )
        for request_id in snapshot.delivered:
            results[request_id] = replace(results[request_id], delivered_step=snapshot.step, delivered_s=snapshot.end_s)
    has_words = trace.origin.runner is not RunnerKind.SCRIPTED
    return tuple(
        replace(
            result,
            token_times_s=tuple(times[request_id]),
            output="".join(pieces[request_id]) if has_words else None,
        )
        for request_id, result in results.items()
    )


def run_metrics(trace: Trace, results: Sequence[RequestResult] | None = None) -> RunMetrics:
    """The figures of a run; `results` may be passed if they are at hand."""
    results = request_results(trace) if results is None else results
    counted = [result for result in results if result.counts]
    steps = slot_steps(trace)
    num_output_tokens = sum(result.num_output_tokens for result in results)
    waits = [result.e2e_steps for result in counted if result.e2e_steps is not None]
    return RunMetrics(
        num_steps=len(trace.steps),
        duration_s=trace.duration_s,
        slot_steps=steps,
        num_output_tokens=num_output_tokens,
        throughput_tok_s=num_output_tokens / trace.duration_s if trace.duration_s > 0 else None,
        slot_utilization=steps.utilization,
        mean_e2e_steps=_mean(waits),
        max_e2e_steps=max(waits, default=None),
        mean_finished_steps=_mean(result.finished_steps for result in counted),
        mean_e2e_s=_mean(result.e2e_s for result in counted),
        mean_ttft_steps=_mean(result.ttft_steps for result in counted),
        mean_ttft_s=_mean(result.ttft_s for result in counted),
        mean_tpot_s=_mean(result.tpot_s for result in counted),
        mean_queue_steps=_mean(result.queue_steps for result in counted),
        mean_withheld_steps=_mean(result.withheld_steps for result in counted),
        mean_queue_s=_mean(result.queue_s for result in counted),
        mean_withheld_s=_mean(result.withheld_s for result in counted),
        max_e2e_s=max((result.e2e_s for result in counted if result.e2e_s is not None), default=None),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
