"""Traces as rows: what charts, tables and CSV files show.

Owns: `gantt_rows`, `wait_rows`, `metric_rows`, `request_rows`. Must not know: charts, pages, colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from batchviz.metrics import RequestResult, RunMetrics, request_results, run_metrics
from batchviz.prefill import PrefillMode
from batchviz.timeline import letter
from batchviz.trace import Trace

Row = dict[str, Any]


class MetricLine(NamedTuple):
    """One line of the table of figures: its name, its unit, where it stands in RunMetrics, how it is computed there."""

    label: str
    unit: str
    field: str
    how: str


MEAN = "mean over delivered answers of"
METRIC_LINES = (
    MetricLine(
        "Steps of the whole run", "steps, counted", "num_steps", "number of steps until the last answer is delivered"
    ),
    MetricLine(
        "Mean wait until the answer is delivered",
        "steps, counted",
        "mean_e2e_steps",
        f"{MEAN} delivered step − arrival step + 1",
    ),
    MetricLine("Longest wait", "steps, counted", "max_e2e_steps", "the largest delivered step − arrival step + 1"),
    MetricLine(
        "Mean wait until the answer is finished",
        "steps, counted",
        "mean_finished_steps",
        f"{MEAN} finished step − arrival step + 1",
    ),
    MetricLine(
        "Mean time a finished answer is withheld",
        "steps, counted",
        "mean_withheld_steps",
        f"{MEAN} delivered step − finished step",
    ),
    MetricLine("Mean queue time", "steps, counted", "mean_queue_steps", f"{MEAN} admitted step − arrival step"),
    MetricLine(
        "Mean TTFT (first token produced)",
        "steps, counted",
        "mean_ttft_steps",
        f"{MEAN} first token's step − arrival step + 1",
    ),
    MetricLine(
        "Utilization: slot-steps working", "share, counted", "slot_utilization", "(prefill + decode) / (slots × steps)"
    ),
    MetricLine("Duration", "s", "duration_s", "sum of the durations of all steps"),
    MetricLine("Throughput", "output tokens/s", "throughput_tok_s", "output tokens / duration"),
    MetricLine(
        "Mean wait until the answer is delivered", "s", "mean_e2e_s", f"{MEAN} end of the delivering step − arrival"
    ),
    MetricLine(
        "Mean TTFT (first token produced)", "s", "mean_ttft_s", f"{MEAN} end of the first token's step − arrival"
    ),
    MetricLine(
        "Mean TPOT (time per output token)", "s", "mean_tpot_s", f"{MEAN} (last token − first token) / (tokens − 1)"
    ),
)


def run_label(pane: int, trace: Trace) -> str:
    """How a run is called beside others, for example "1: static, 4 slots": unique, since panes may be alike."""
    config = trace.config
    parts = [f"{pane + 1}: {config.policy}", f"{config.num_slots} slot{'' if config.num_slots == 1 else 's'}"]
    if config.max_batched_tokens is not None:
        parts.append(f"{config.prefill} by {config.max_batched_tokens}")
    elif config.prefill is not PrefillMode.MIXED:
        parts.append(str(config.prefill))
    if config.kv_budget_tokens is not None:
        parts.append(f"KV {config.kv_budget_tokens:,}")
    if config.group_timeout:
        parts.append(f"time-out {config.group_timeout:g}")
    return ", ".join(parts)


def gantt_rows(traces: Sequence[Trace], pane: int) -> list[Row]:
    """The stages of each request's life in one of the runs. A stage covers steps `start` to `end`, the end left out."""
    trace = traces[pane]
    return [
        {
            "run": run_label(pane, trace),
            "request": _request_label(index, result),
            "order": index,
            "stage": stage,
            "start": start,
            "end": end,
            "steps": end - start,
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
        row["how it is computed"] = line.how
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
