"""Several runs as `batchviz-compare/1`: the JSON that `compare --json` prints.

Owns: that format. Keys may be added, none renamed. Must not know: engines, pages. A step of a request that never came
to it is null; `output` is null where no model ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from batchviz.kv_metrics import kv_totals
from batchviz.metrics import RequestResult, RunMetrics, request_results, run_metrics
from batchviz.trace import Trace

COMPARE_SCHEMA = "batchviz-compare/1"
OWN_KEYS = ("num_steps", "duration_s", "slot_steps")  # of RunMetrics: they stand beside `metrics`, not in it


def to_compare(traces: Sequence[Trace]) -> dict[str, Any]:
    """Plain data, ready for `json.dumps`."""
    return {
        "schema": COMPARE_SCHEMA,
        "scenario": traces[0].scenario.name if traces else "",
        "title": traces[0].scenario.title if traces else "",
        "runs": [_run(trace) for trace in traces],
    }


def _run(trace: Trace) -> dict[str, Any]:
    results = request_results(trace)
    metrics = run_metrics(trace, results)
    model = trace.origin.model
    return {
        "policy": trace.config.policy,
        **({"policy_class": trace.config.policy_class} if trace.config.policy_class else {}),
        "num_slots": trace.config.num_slots,
        "prefill": trace.config.prefill,
        "max_batched_tokens": trace.config.max_batched_tokens,
        "kv_budget_tokens": trace.config.kv_budget_tokens,
        "group_timeout": trace.config.group_timeout,
        "slot_capacity": trace.config.slot_capacity,
        "num_steps": metrics.num_steps,
        "duration_s": round(metrics.duration_s, 6),
        "slot_steps": metrics.slot_steps._asdict(),
        "runner": trace.origin.runner,
        "clock": trace.scenario.arrival_unit,
        "seconds": trace.origin.seconds,
        "status": trace.status,
        "exact": model.exact if model else None,
        "metrics": _metrics(metrics),
        "kv": _kv(trace),
        "requests": [_request(result, trace) for result in results],
    }


def _metrics(metrics: RunMetrics) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(metrics).items() if key not in OWN_KEYS}
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in plain.items()}


def _kv(trace: Trace) -> dict[str, Any]:
    """KV positions summed over the steps, and the most in one step."""
    totals = kv_totals(trace)
    share = totals.used_share
    return {
        "reserved_position_steps": totals.reserved,
        "used_position_steps": totals.used,
        "unused_position_steps": totals.unused,
        "held_position_steps": totals.held,
        "used_share": None if share is None else round(share, 6),
        "peak_reserved": totals.peak_reserved,
        "peak_used": totals.peak_used,
    }


def _request(result: RequestResult, trace: Trace) -> dict[str, Any]:
    request = result.request
    why = next((r.why for step in trace.steps for r in step.rejected if r.request_id == request.id), None)
    plain: dict[str, Any] = {
        "id": request.id,
        "slot": result.slot,
        "arrival": request.arrival,
        "admitted_step": result.admitted_step,
        "first_token_step": result.first_token_step,
        "finished_step": result.finished_step,
        "delivered_step": result.delivered_step,
        "e2e_steps": result.e2e_steps,
        "num_prompt_tokens": request.num_prompt_tokens,
        "num_output_tokens": result.num_output_tokens,
        "finish_reason": result.finish_reason,
        "output": result.output,
    }
    return plain | ({"why": why} if why is not None else {})
