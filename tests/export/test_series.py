"""What the charts show is what the metrics say, added up over the steps, for short runs and for long ones."""

from __future__ import annotations

import csv
import io

import pytest

from batchviz.export import series
from batchviz.export.csv_files import requests_csv, steps_csv
from batchviz.export.tables import run_label
from batchviz.link import panes_from_text
from batchviz.metrics import request_results, run_metrics
from batchviz.prefill import PrefillMode
from batchviz.presets import load_scenario
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import SlotPhase, Trace
from tests.builders import GOLDEN_LENGTHS, scripted_trace

SHORT = tuple(scripted_trace(policy, 4, GOLDEN_LENGTHS, [0, 0, 0, 0, 0, 9, 9, 300]) for policy in Policy)
LONG = tuple(scripted_trace(policy, 3, [90, 200] * 8) for policy in (Policy.SEQUENTIAL, Policy.CONTINUOUS))


def chunked() -> tuple[Trace, ...]:
    requests = tuple(ScenarioRequest(f"r{i}", 9, prompt_tokens=70, output_tokens=9) for i in range(6))
    config = make_config(Policy.CONTINUOUS, 3, prefill=PrefillMode.CHUNKED, max_batched_tokens=16, kv_budget_tokens=160)
    return (scripted_run(Scenario("c", "c", requests), config).finish(),)


ALL = [SHORT, LONG, chunked()]


@pytest.mark.parametrize("traces", ALL)
@pytest.mark.parametrize("size", [1, 7])
def test_buckets_add_up_to_the_metrics(traces: tuple[Trace, ...], size: int) -> None:
    for trace in traces:
        metrics = run_metrics(trace)
        found = series.buckets(trace, size)
        assert sum(bucket.num_steps for bucket in found) == metrics.num_steps
        for phase in SlotPhase:
            assert sum(bucket.phases[phase] for bucket in found) == getattr(metrics.slot_steps, phase.value)
        assert sum(bucket.tokens for bucket in found) == metrics.num_output_tokens
        assert sum(bucket.seconds for bucket in found) == pytest.approx(metrics.duration_s)
        waited = sum(result.queue_steps or 0 for result in request_results(trace))
        assert sum(bucket.waiting for bucket in found) == waited


@pytest.mark.parametrize("traces", ALL)
def test_kv_used_never_exceeds_reserved_nor_reserved_the_limits(traces: tuple[Trace, ...]) -> None:
    for trace in traces:
        budget = trace.config.kv_budget_tokens or trace.config.num_slots * trace.config.slot_capacity
        for bucket in series.buckets(trace, 1):
            assert 0 <= bucket.kv_used <= bucket.kv_reserved <= budget


def test_kv_grows_by_a_prompt_and_then_by_one_token_a_step() -> None:
    trace = scripted_trace(Policy.SEQUENTIAL, 1, [3, 2])  # prompts of 10 tokens
    found = series.buckets(trace, 1)
    assert [bucket.kv_used for bucket in found] == [10, 11, 12, 10, 11]
    assert [bucket.kv_reserved for bucket in found] == [13, 13, 13, 12, 12]


@pytest.mark.parametrize("traces", ALL)
def test_stacked_slots_are_as_many_as_there_are_and_charts_stay_small(traces: tuple[Trace, ...]) -> None:
    for pane, trace in enumerate(traces):
        rows = series.phase_rows(traces, pane)
        by_step: dict[int, float] = {}
        for row in rows:
            by_step[row["step"]] = by_step.get(row["step"], 0) + row["slots"]
        assert all(total == pytest.approx(trace.config.num_slots) for total in by_step.values())
        assert max(by_step) == len(trace.steps)
        assert len(by_step) <= series.MAX_POINTS + 1


def test_a_long_run_is_shown_in_buckets_that_its_table_tells() -> None:
    size = series.bucket_size(LONG)
    assert size == 6
    rows = series.step_rows(LONG)
    assert sum(row["steps"] for row in rows) == sum(len(trace.steps) for trace in LONG)
    assert sum(row["output tokens"] for row in rows) == 2 * 8 * 290


@pytest.mark.parametrize("traces", ALL)
def test_shares_end_with_everybody_and_tokens_per_second_are_tokens_over_seconds(traces: tuple[Trace, ...]) -> None:
    shares = series.share_rows(traces)
    for pane, trace in enumerate(traces):
        own = [row for row in shares if row["pane"] == pane]
        waits = [result.e2e_steps for result in request_results(trace) if result.e2e_steps is not None]
        assert own[-1]["share"] == 1
        assert own[-1]["wait"] == max(waits)
        assert sum(row["wait"] for row in own) == sum(waits)
        size = series.bucket_size(traces, series.MAX_TOKEN_POINTS)
        first = series.buckets(trace, size)[0]
        rate = next(row["tokens"] for row in series.token_rows(traces) if row["pane"] == pane)
        assert rate == pytest.approx(first.tokens / first.seconds)


def test_every_chart_is_said_in_words_with_its_numbers() -> None:
    traces = tuple(scripted_trace(policy, 4, GOLDEN_LENGTHS) for policy in (Policy.STATIC, Policy.CONTINUOUS))
    assert series.phases_in_words(traces, 0) == (
        "1: static, 4 slots: of 1,280 slot-steps 8 prefill, 440 decode, 832 held, answer finished."
    )
    assert series.queue_in_words(traces) == (
        "1: static, 4 slots: at most 4 wait, the last until step 199. "
        "2: continuous, 4 slots: at most 4 wait, the last until step 22."
    )
    assert "448 output tokens" in series.tokens_in_words(traces)
    assert series.kv_in_words(traces, 0).startswith("1: static, 4 slots: at most ")
    assert series.waits_in_words(traces).startswith("1: static, 4 slots: half of 8 answers are there within 200 steps")
    assert "withheld for 832 steps altogether" in series.requests_in_words(traces, 0)


def test_a_run_without_steps_has_rows_of_nothing() -> None:
    empty = (Trace(SHORT[0].scenario, SHORT[0].config, SHORT[0].origin, ()),)
    assert series.phase_rows(empty, 0) == series.kv_rows(empty, 0) == series.queue_rows(empty) == []
    assert series.token_rows(empty) == series.step_rows(empty) == []
    assert "nothing was delivered" in series.waits_in_words(empty)
    assert "nobody ever waits" in series.queue_in_words(empty)


def test_runs_that_differ_in_one_setting_have_different_labels() -> None:
    scenario = load_scenario("equal-lengths")
    panes = panes_from_text("static-4-t3,continuous-4-chunked-b64-k900,continuous-4-exclusive")
    labels = [
        run_label(
            i,
            scripted_run(
                scenario,
                make_config(
                    pane.policy,
                    pane.num_slots,
                    prefill=pane.prefill,
                    max_batched_tokens=pane.max_batched_tokens,
                    kv_budget_tokens=pane.kv_budget_tokens,
                    group_timeout=pane.group_timeout,
                ),
            ).trace(),
        )
        for i, pane in enumerate(panes)
    ]
    assert labels == [
        "1: static, 4 slots, time-out 3",
        "2: continuous, 4 slots, chunked by 64, KV 900",
        "3: continuous, 4 slots, exclusive",
    ]


def test_csv_files_hold_every_request_and_every_step() -> None:
    requests = list(csv.DictReader(io.StringIO(requests_csv(SHORT))))
    assert len(requests) == 3 * 8
    assert requests[0]["id"] == "r0"
    steps = list(csv.DictReader(io.StringIO(steps_csv(SHORT))))
    assert len(steps) == sum(len(trace.steps) for trace in SHORT)
    assert sum(int(row["output_tokens"]) for row in steps) == 3 * sum(GOLDEN_LENGTHS)
    assert steps[0]["prefill_slots"] == "1"
    assert csv_of_nothing() == ""


def csv_of_nothing() -> str:
    return steps_csv(())


def test_text_that_a_spreadsheet_would_run_is_made_harmless() -> None:
    request = ScenarioRequest("=1+1", 3, prompt="@SUM(A1)", output_tokens=3)
    trace = scripted_run(Scenario("c", "c", (request,)), make_config(Policy.STATIC, 1)).finish()
    (row,) = csv.DictReader(io.StringIO(requests_csv((trace,))))
    assert row["id"] == "'=1+1"
    assert row["prompt"] == "'@SUM(A1)"
