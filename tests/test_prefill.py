"""Prefill modes, KV budgets, group time-outs, arrivals in seconds: by hand where it can be seen, and as properties."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.check import check_trace
from batchviz.metrics import request_results, slot_steps
from batchviz.prefill import PrefillMode
from batchviz.request import Request
from batchviz.runner import ScriptedRunner
from batchviz.runs import Run
from batchviz.scheduler import Policy, make_scheduler
from batchviz.trace import (
    ArrivalUnit,
    Origin,
    RunConfig,
    RunnerKind,
    ScenarioRecord,
    Seconds,
    SlotPhase,
    Trace,
    TracedRequest,
)  # fmt: skip

LETTER = {
    SlotPhase.PREFILL: "P",
    SlotPhase.DECODE: "D",
    SlotPhase.STALLED: "s",
    SlotPhase.HELD: "h",
    SlotPhase.EMPTY: ".",
}


def run(config: RunConfig, requests: list[Request], unit: ArrivalUnit = ArrivalUnit.STEPS) -> Trace:
    traced = tuple(TracedRequest(r.id, r.num_prompt_tokens, r.max_tokens, r.arrival, r.output_tokens) for r in requests)
    record = ScenarioRecord("test", "A test", traced, arrival_unit=unit)
    origin = Origin(RunnerKind.SCRIPTED, Seconds.MODELLED)
    return Run(record, requests, config, origin, ScriptedRunner(lambda rows: 0.25 * rows)).finish()


def request(name: str, prompt: int, output: int, arrival: float = 0) -> Request:
    return Request(name, (7,) * prompt, output, arrival, output_tokens=output)


def picture(trace: Trace) -> list[str]:
    return ["".join(LETTER[step.slots[slot].phase] for step in trace.steps) for slot in range(trace.config.num_slots)]


def test_exclusive_stalls_the_decoding_slots_while_a_prompt_is_read() -> None:
    config = RunConfig(Policy.CONTINUOUS, 2, 64, PrefillMode.EXCLUSIVE)
    trace = run(config, [request("a", 4, 4), request("b", 9, 2, arrival=2)])
    assert picture(trace) == ["PDsDD", "..PD."]
    assert trace.steps[2].num_rows == 9
    assert check_trace(trace) == []


def test_mixed_does_not_stall() -> None:
    trace = run(RunConfig(Policy.CONTINUOUS, 2, 64), [request("a", 4, 4), request("b", 9, 2, arrival=2)])
    assert picture(trace) == ["PDDD", "..PD"]
    assert trace.steps[2].num_rows == 10


def test_chunked_reads_a_prompt_in_what_decoding_leaves_of_the_budget() -> None:
    config = RunConfig(Policy.CONTINUOUS, 2, 64, PrefillMode.CHUNKED, max_batched_tokens=4)
    trace = run(config, [request("a", 4, 5), request("b", 9, 2, arrival=1)])
    assert picture(trace) == ["PDDDD", ".PPPD"]
    assert [step.slots[1].num_tokens for step in trace.steps] == [0, 3, 3, 3, 1]
    assert [step.slots[1].token_id is not None for step in trace.steps] == [False, False, False, True, True]
    assert all(step.num_rows <= 4 for step in trace.steps)


def test_chunked_head_waits_for_the_budget_though_a_slot_is_free() -> None:
    config = RunConfig(Policy.CONTINUOUS, 2, 64, PrefillMode.CHUNKED, max_batched_tokens=4)
    trace = run(config, [request("a", 12, 1), request("b", 2, 1)])
    assert picture(trace) == ["PPPP", "...."]
    assert [step.head_reason for step in trace.steps] == ["token_budget", "token_budget", "token_budget", None]
    assert check_trace(trace) == []


def test_static_seats_its_whole_group_at_once_and_reads_piece_by_piece() -> None:
    config = RunConfig(Policy.STATIC, 2, 64, PrefillMode.CHUNKED, max_batched_tokens=4)
    trace = run(config, [request("a", 6, 2), request("b", 3, 1)])
    assert [admission.slot for admission in trace.steps[0].admitted] == [0, 1]
    assert picture(trace) == ["PPD", "sPP"]
    assert [step.slots[1].num_tokens for step in trace.steps] == [0, 2, 1]


def test_a_budget_below_the_slots_or_in_another_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="max_batched_tokens is 3; 4 slots need at least 4"):
        make_scheduler(Policy.STATIC, 4, prefill=PrefillMode.CHUNKED, max_batched_tokens=3)
    with pytest.raises(ValueError, match="belongs to prefill mode chunked"):
        make_scheduler(Policy.STATIC, 4, max_batched_tokens=8)
    with pytest.raises(ValueError, match="chunked needs max_batched_tokens"):
        make_scheduler(Policy.STATIC, 4, prefill=PrefillMode.CHUNKED)


def test_the_kv_budget_holds_back_the_head_and_nobody_overtakes_it() -> None:
    config = RunConfig(Policy.CONTINUOUS, 3, 64, kv_budget_tokens=20)
    trace = run(config, [request("a", 6, 4), request("b", 8, 4), request("c", 2, 1)])
    assert trace.steps[0].head == "b"
    assert trace.steps[0].head_reason == "kv_capacity"
    assert [r.admitted_step for r in request_results(trace)] == [0, 4, 4]
    assert check_trace(trace) == []


def test_a_request_beyond_the_kv_budget_is_rejected() -> None:
    trace = run(RunConfig(Policy.CONTINUOUS, 1, 64, kv_budget_tokens=20), [request("a", 18, 4), request("b", 2, 1)])
    assert trace.steps[0].rejected[0].why.endswith("= 22 KV positions; the KV budget has 20")
    assert check_trace(trace) == []


def test_a_group_that_is_not_full_waits_for_its_time_out() -> None:
    config = RunConfig(Policy.STATIC, 3, 64, group_timeout=4)
    trace = run(config, [request("a", 2, 2), request("b", 2, 2, arrival=1), request("c", 2, 1, arrival=9)])
    assert [step.head_reason for step in trace.steps[:5]] == ["group_filling"] * 4 + [None]
    assert [r.admitted_step for r in request_results(trace)] == [4, 4, 13]
    full = run(config, [request("a", 2, 2), request("b", 2, 2, 1), request("c", 2, 1, 2)])
    assert [r.admitted_step for r in request_results(full)] == [2, 2, 2]


def test_seconds_jump_over_gaps_in_which_nobody_is_there() -> None:
    trace = run(
        RunConfig(Policy.CONTINUOUS, 1, 64), [request("a", 4, 2), request("b", 4, 1, arrival=10.5)], ArrivalUnit.SECONDS
    )
    assert [(step.start_s, step.duration_s) for step in trace.steps] == [(0, 1.0), (1.0, 0.25), (10.5, 1.0)]
    second = request_results(trace)[1]
    assert (second.arrival_s, second.e2e_s, second.e2e_steps) == (10.5, 1.0, 1)
    assert check_trace(trace) == []


def test_a_request_that_arrives_within_a_step_waits_for_the_next() -> None:
    trace = run(
        RunConfig(Policy.CONTINUOUS, 2, 64), [request("a", 4, 3), request("b", 4, 1, arrival=0.5)], ArrivalUnit.SECONDS
    )
    second = request_results(trace)[1]
    assert (second.arrival_step, second.queue_s) == (1, 0.5)


configurations = st.builds(
    lambda policy, slots, mode, extra, kv, timeout: RunConfig(
        policy,
        1 if policy is Policy.SEQUENTIAL else slots,
        64,
        mode,
        slots + extra if mode is PrefillMode.CHUNKED else None,
        kv,
        timeout if policy is Policy.STATIC else 0,
    ),
    st.sampled_from(list(Policy)),
    st.integers(1, 5),
    st.sampled_from(list(PrefillMode)),
    st.integers(0, 9),
    st.none() | st.integers(5, 80),
    st.just(0) | st.integers(1, 6),
)
people = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(0, 25)), min_size=1, max_size=10)


@settings(max_examples=400, deadline=None)
@given(configurations, people, st.sampled_from(list(ArrivalUnit)))
def test_every_rule_holds_in_every_mode(
    config: RunConfig, crowd: list[tuple[int, int, int]], unit: ArrivalUnit
) -> None:
    requests = [request(f"r{i}", prompt, output, arrival) for i, (prompt, output, arrival) in enumerate(crowd)]
    trace = run(config, requests, unit)
    assert check_trace(trace) == []
    served = [r for r in requests if r.num_reserved_tokens <= min(64, config.kv_budget_tokens or 64)]
    assert sum(result.counts for result in request_results(trace)) == len(served)
    counted = slot_steps(trace)
    assert counted.total == config.num_slots * len(trace.steps)
    tokens = [slot.num_tokens for step in trace.steps for slot in step.slots]
    assert sum(tokens) == sum(r.num_prompt_tokens + r.max_output_tokens - 1 for r in served)
    if config.max_batched_tokens is not None:
        assert all(step.num_rows <= config.max_batched_tokens for step in trace.steps)
    if config.kv_budget_tokens is not None:
        needs = {r.id: r.num_reserved_tokens for r in requests}
        for step in trace.steps:
            seated = [needs[slot.request_id] for slot in step.slots if slot.request_id is not None]
            assert sum(seated) <= config.kv_budget_tokens


@settings(max_examples=150, deadline=None)
@given(configurations, people)
def test_a_decoding_slot_is_stalled_by_exclusive_prefill_alone(
    config: RunConfig, crowd: list[tuple[int, int, int]]
) -> None:
    requests = [request(f"r{i}", prompt, output, arrival) for i, (prompt, output, arrival) in enumerate(crowd)]
    trace = run(config, requests)
    begun: set[str] = set()
    for step in trace.steps:
        for slot in step.slots:
            if slot.phase is SlotPhase.STALLED and config.prefill is not PrefillMode.EXCLUSIVE:
                assert slot.request_id not in begun
            if slot.token_id is not None and slot.request_id is not None:
                begun.add(slot.request_id)
