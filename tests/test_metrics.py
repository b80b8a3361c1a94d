"""The figures, held against arithmetic done by hand on a run small enough to see whole."""

from __future__ import annotations

import pytest

from batchviz.engine import Engine
from batchviz.metrics import SlotSteps, request_results, run_metrics, slot_steps
from batchviz.runner import ScriptedRunner
from batchviz.scheduler import Policy, make_scheduler
from tests.builders import requests_of, scripted_trace, trace_of

# static, two slots, one second a step:   step  0 1 2 3 4 | 5 6
#   r0 (2 tokens), slot 0                       P D h h h
#   r1 (5 tokens), slot 1                       P D D D D
#   r2 (2 tokens, arrives at 1), slot 0                   | P D


def small_trace(policy: Policy):  # type: ignore[no-untyped-def]
    requests = requests_of([2, 5, 2], [0, 0, 1])
    engine = Engine(make_scheduler(policy, 2), ScriptedRunner(lambda num_rows: 1.0))
    engine.add_all(requests)
    return trace_of(engine, policy, 2, requests)


def test_static_by_hand() -> None:
    trace = small_trace(Policy.STATIC)
    first, second, third = request_results(trace)
    assert slot_steps(trace) == SlotSteps(prefill=3, decode=6, stalled=0, held=3, empty=2)
    assert (first.finished_step, first.delivered_step, first.withheld_steps) == (1, 4, 3)
    assert (first.e2e_steps, second.e2e_steps, third.e2e_steps) == (5, 5, 6)
    assert (third.admitted_step, third.queue_steps, third.ttft_steps) == (5, 4, 5)
    assert (first.e2e_s, third.queue_s, third.ttft_s) == (5.0, 4.0, 5.0)
    assert second.tpot_s == 1.0
    assert second.itl_s == (1.0, 1.0, 1.0, 1.0)


def test_continuous_by_hand() -> None:
    trace = small_trace(Policy.CONTINUOUS)
    metrics = run_metrics(trace)
    assert slot_steps(trace) == SlotSteps(prefill=3, decode=6, stalled=0, held=0, empty=1)
    assert [result.e2e_steps for result in request_results(trace)] == [2, 5, 3]
    assert metrics.mean_e2e_steps == pytest.approx(10 / 3)
    assert metrics.throughput_tok_s == pytest.approx(9 / 5)
    assert metrics.slot_utilization == 0.9
    assert metrics.mean_withheld_steps == 0


def test_one_token_has_no_tpot() -> None:
    (result,) = request_results(scripted_trace(Policy.CONTINUOUS, 1, [1]))
    assert result.tpot_s is None
    assert result.itl_s == ()


def test_a_run_of_nobody_has_no_means() -> None:
    trace = scripted_trace(Policy.CONTINUOUS, 1, [2000])
    metrics = run_metrics(trace)
    assert metrics.mean_e2e_steps is None
    assert metrics.throughput_tok_s is None
    assert metrics.num_output_tokens == 0
