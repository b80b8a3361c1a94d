"""Traces as rows: what charts, tables and CSV files show.

Owns: `gantt_rows`, `wait_rows`, `metric_rows`, `request_rows`. Must not know: charts, pages, colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from batchviz.metrics import RequestResult, RunMetrics, request_results, run_metrics
from batchviz.timeline import letter
from batchviz.trace import Trace

Row = dict[str, Any]


class MetricLine(NamedTuple):
    """One line of the table of figures: its name, its unit, and where it stands in RunMetrics."""

    label: str
    unit: str
    field: str


METRIC_LINES = (
    MetricLine("Steps of the whole run", "steps, counted", "num_steps"),
    MetricLine("Mean wait until the answer is delivered", "steps, counted", "mean_e2e_steps"),
    MetricLine("Longest wait", "steps, counted", "max_e2e_steps"),
    MetricLine("Mean wait until the answer is finished", "steps, counted", "mean_finished_steps"),
    MetricLine("Mean time a finished answer is withheld", "steps, counted", "mean_withheld_steps"),
    MetricLine("Mean queue time", "steps, counted", "mean_queue_steps"),
    MetricLine("Mean TTFT (first token produced)", "steps, counted", "mean_ttft_steps"),
    MetricLine("Slot-steps working", "share, counted", "slot_utilization"),
    MetricLine("Duration", "s", "duration_s"),
    MetricLine("Throughput", "output tokens/s", "throughput_tok_s"),
    MetricLine("Mean wait until the answer is delivered", "s", "mean_e2e_s"),
    MetricLine("Mean TTFT (first token produced)", "s", "mean_ttft_s"),
    MetricLine("Mean TPOT (time per output token)", "s", "mean_tpot_s"),
)


def run_label(pane: int, trace: Trace) -> str:
    """How a run is called beside others, for example "1: static, 4 slots": unique, since panes may be alike."""
    slots = trace.config.num_slots
    return f"{pane + 1}: {trace.config.policy}, {slots} slot{'' if slots == 1 else 's'}"


def gantt_rows(traces: Sequence[Trace], pane: int) -> list[Row]:
    """The stages of each request's life in one of the runs. A stage covers steps `start` to `end`, the end left out."""
    trace = traces[pane]
    longest = max(len(trace.steps) for trace in traces)
    return [
        {
            "run": run_label(pane, trace),
            "request": _request_label(index, result),
            "order": index,
            "stage": stage,
            "start": start,
            "end": end,
            "steps": end - start,
            "longest": longest,
        }
        for index, result in enumerate(request_results(trace))
        for stage, start, end in _stages(result)
        if end > start
    ]


def _stages(result: RequestResult) -> list[tuple[str, int, int]]:
    if result.arrival_step is None or result.admitted_step is None or result.first_token_step is None:
        return []
    first_end = result.first_token_step + 1
    stages: list[tuple[str, int, int]] = [
        ("waiting in the queue", result.arrival_step, result.admitted_step),
        ("prefill", result.admitted_step, first_end),
    ]
    if result.finished_step is not None:
        stages.append(("decode", first_end, result.finished_step + 1))
        if result.delivered_step is not None:
            stages.append(("finished, answer withheld", result.finished_step + 1, result.delivered_step + 1))
    return stages


def wait_rows(traces: Sequence[Trace]) -> list[Row]:
    """What each user waited until delivery, in steps, in each run."""
    return [
        {
            "pane": pane,
            "run": run_label(pane, trace),
            "request": _request_label(index, result),
            "order": index,
            "wait": result.e2e_steps,
        }
        for pane, trace in enumerate(traces)
        for index, result in enumerate(request_results(trace))
        if result.e2e_steps is not None
    ]


def metric_rows(traces: Sequence[Trace]) -> list[Row]:
    """The table of figures: a column a run, and with two runs the ratio of the first to the second."""
    metrics = [run_metrics(trace) for trace in traces]
    kinds = {str(trace.origin.seconds) for trace in traces}
    rows = []
    for line in METRIC_LINES:
        values = [_value(metric, line) for metric in metrics]
        unit = line.unit if "counted" in line.unit else f"{line.unit}, {' / '.join(sorted(kinds))}"
        row: Row = {"figure": line.label, "unit": unit}
        for pane, (trace, value) in enumerate(zip(traces, values, strict=True)):
            row[run_label(pane, trace)] = value
        if len(values) == 2:
            first, second = values
            row["ratio"] = first / second if first is not None and second else None
        rows.append(row)
    return rows


def _value(metrics: RunMetrics, line: MetricLine) -> float | None:
    value = getattr(metrics, line.field)
    return None if value is None else float(value)


def request_rows(traces: Sequence[Trace]) -> list[Row]:
    """One row for each request of each run: everything that is known of it."""
    return [
        {
            "run": run_label(pane, trace),
            "request": letter(index),
            "id": result.request.id,
            "prompt": result.request.prompt,
            "prompt tokens": result.request.num_prompt_tokens,
            "output tokens": result.num_output_tokens,
            "arrival": result.request.arrival,
            "slot": result.slot,
            "admitted": result.admitted_step,
            "first token": result.first_token_step,
            "finished": result.finished_step,
            "delivered": result.delivered_step,
            "ended by": None if result.finish_reason is None else str(result.finish_reason),
            "wait (steps)": result.e2e_steps,
            "wait (s)": result.e2e_s,
            "answer": result.output,
        }
        for pane, trace in enumerate(traces)
        for index, result in enumerate(request_results(trace))
    ]


def _request_label(index: int, result: RequestResult) -> str:
    return f"{letter(index)}  {result.request.id[:20]}"
