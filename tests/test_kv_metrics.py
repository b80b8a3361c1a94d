"""KV memory from a trace alone: by hand where it can be seen, and as properties against the requests' arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.kv_metrics import KvStep, kv_steps, kv_totals
from batchviz.metrics import request_results
from batchviz.prefill import PrefillMode
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import Trace


def trace_of(
    lengths: list[tuple[int, int, int]],
    policy: Policy,
    num_slots: int,
    prefill: PrefillMode = PrefillMode.MIXED,
    kv_budget_tokens: int | None = None,
) -> Trace:
    """Runs (prompt tokens, output tokens, arrival) of each request."""
    requests = tuple(
        ScenarioRequest(f"r{i}", output, prompt_tokens=prompt, output_tokens=output, arrival=arrival)
        for i, (prompt, output, arrival) in enumerate(lengths)
    )
    budget = num_slots + 3 if prefill is PrefillMode.CHUNKED else None
    config = make_config(
        policy, num_slots, prefill=prefill, max_batched_tokens=budget, kv_budget_tokens=kv_budget_tokens
    )
    return scripted_run(Scenario("test", "A test", requests), config).finish()


def test_a_slot_reserves_from_the_first_step_what_it_fills_by_the_last() -> None:
    trace = trace_of([(4, 3, 0)], Policy.CONTINUOUS, 1)
    assert list(kv_steps(trace)) == [KvStep(4, 0, 7), KvStep(5, 0, 7), KvStep(6, 0, 7)]
    totals = kv_totals(trace)
    assert (totals.used, totals.reserved, totals.unused, totals.peak_used, totals.peak_reserved) == (15, 21, 6, 6, 7)
    assert totals.used_share == pytest.approx(15 / 21)


def test_static_batching_holds_the_memory_of_finished_answers() -> None:
    static = trace_of([(4, 1, 0), (4, 3, 0)], Policy.STATIC, 2)
    assert list(kv_steps(static)) == [KvStep(8, 0, 12), KvStep(9, 4, 12), KvStep(10, 4, 12)]
    continuous = trace_of([(4, 1, 0), (4, 3, 0)], Policy.CONTINUOUS, 2)
    assert list(kv_steps(continuous)) == [KvStep(8, 0, 12), KvStep(5, 0, 7), KvStep(6, 0, 7)]


def test_a_prompt_that_is_not_read_yet_reserves_and_uses_nothing() -> None:
    trace = trace_of([(8, 2, 0), (9, 1, 0)], Policy.STATIC, 2, PrefillMode.CHUNKED)
    assert [(step.used, step.reserved) for step in kv_steps(trace)][:2] == [(5, 20), (10, 20)]


def test_a_run_of_no_steps_has_no_share() -> None:
    assert kv_totals(Trace(**{**_fields(trace_of([(1, 1, 0)], Policy.STATIC, 1)), "steps": ()})).used_share is None


def _fields(trace: Trace) -> dict[str, object]:
    return {name: getattr(trace, name) for name in ("scenario", "config", "origin", "steps")}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(0, 20)), min_size=1, max_size=10),
    st.sampled_from(list(Policy)),
    st.integers(1, 5),
    st.sampled_from(list(PrefillMode)),
    st.none() | st.integers(42, 100),
)
def test_nothing_is_used_that_is_not_reserved_and_the_sums_are_the_requests_own(
    lengths: list[tuple[int, int, int]], policy: Policy, num_slots: int, prefill: PrefillMode, budget: int | None
) -> None:
    trace = trace_of(lengths, policy, num_slots, prefill, budget)
    steps = list(kv_steps(trace))
    assert len(steps) == len(trace.steps)
    assert all(0 <= step.held <= step.used <= step.reserved for step in steps)
    assert budget is None or all(step.reserved <= budget for step in steps)
    assert policy is not Policy.CONTINUOUS or all(step.held == 0 for step in steps)
    # What a request reserves, times the steps in which it sits in a slot.
    seated = {result.request.id: 0 for result in request_results(trace)}
    for snapshot in trace.steps:
        for slot in snapshot.slots:
            if slot.request_id is not None:
                seated[slot.request_id] += 1
    needs = {f"r{i}": prompt + output for i, (prompt, output, _) in enumerate(lengths)}
    totals = kv_totals(trace, steps)
    assert totals.reserved == sum(needs[request_id] * count for request_id, count in seated.items())
    assert totals.unused == totals.reserved - totals.used
    if prefill is PrefillMode.MIXED and policy is Policy.CONTINUOUS:
        # A request of p and n tokens fills p, p + 1, ..., p + n - 1 positions in its n steps.
        assert totals.used == sum(prompt * n + n * (n - 1) // 2 for prompt, n, _ in lengths)
