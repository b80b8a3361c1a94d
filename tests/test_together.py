"""Runs that keep step, and what joins them while they go on: every rule of scheduling holds in every run."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchviz.check import check_trace
from batchviz.metrics import request_results
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.together import Together
from batchviz.trace import Trace, TracedRequest, TraceStatus
from batchviz.trace_file import bundle_to_json, traces_from_json

NO_STOPS: frozenset[int] = frozenset()
PAIR = (Policy.STATIC, Policy.CONTINUOUS)


def together(lengths: list[int], slots: int = 2, arrivals: Mapping[int, int] | None = None) -> Together:
    requests = tuple(
        ScenarioRequest(f"r{i}", n, prompt_tokens=9, output_tokens=n, arrival=(arrivals or {}).get(i, 0))
        for i, n in enumerate(lengths)
    )
    scenario = Scenario("t", "T", requests)
    return Together([scripted_run(scenario, make_config(policy, slots)) for policy in PAIR])


def message(number: int, arrival: int, length: int = 4) -> TracedRequest:
    return TracedRequest(f"chat-{number}", 7, length, arrival, output_tokens=length)


def finished(runs: Together) -> tuple[Trace, ...]:
    while runs.has_work:
        list(runs.step())
    return tuple(run.trace() for run in runs.runs)


def test_runs_go_on_step_by_step_beside_each_other() -> None:
    runs = together([3, 20, 5])
    seen = [(place, snapshot.step) for _ in range(4) for place, snapshot in runs.step()]
    assert seen == [(place, step) for step in range(4) for place in (0, 1)]


def test_a_message_joins_the_running_batch_and_waits_for_the_static_group() -> None:
    runs = together([3, 40])
    for _ in range(10):
        list(runs.step())
    runs.add(message(1, runs.next_step), NO_STOPS)
    static, continuous = (request_results(trace)[-1] for trace in finished(runs))
    assert static.arrival_step == continuous.arrival_step == 10
    assert continuous.admitted_step == 10
    assert static.admitted_step == 40


def test_a_run_that_is_through_steps_on_empty_until_the_message_comes() -> None:
    runs = together([3, 9, 3, 9])
    while runs.runs[1].has_work:
        list(runs.step())
    list(runs.step())
    arrival = runs.next_step
    assert arrival > runs.runs[1].step_number
    runs.add(message(1, arrival), NO_STOPS)
    traces = finished(runs)
    assert [check_trace(trace) for trace in traces] == [[], []]
    assert request_results(traces[1])[-1].admitted_step == arrival


def test_what_joined_is_part_of_one_scenario_that_goes_through_a_file() -> None:
    runs = together([3, 12])
    list(runs.step())
    runs.add(message(1, runs.next_step), NO_STOPS)
    traces = finished(runs)
    assert traces_from_json(bundle_to_json(traces)) == traces
    assert [trace.status for trace in traces] == [TraceStatus.COMPLETE] * 2
    assert [request.id for request in traces[0].scenario.requests] == ["r0", "r1", "chat-1"]


def test_an_id_that_is_known_or_a_step_that_is_over_is_refused() -> None:
    runs = together([3, 12])
    list(runs.step())
    with pytest.raises(ValueError, match="used twice"):
        runs.add(TracedRequest("r0", 5, 5, 5), NO_STOPS)
    with pytest.raises(ValueError, match="step 1 is next"):
        runs.add(message(1, 0), NO_STOPS)
    assert [check_trace(trace) for trace in finished(runs)] == [[], []]


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
    st.integers(1, 4),
    st.dictionaries(st.integers(0, 7), st.integers(0, 30)),
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9)), max_size=5),
)
def test_whenever_something_joins_every_rule_holds(
    lengths: list[int], slots: int, arrivals: dict[int, int], messages: list[tuple[int, int]]
) -> None:
    runs = together(lengths, slots, arrivals)
    for number, (later, length) in enumerate(messages):
        for _ in range(later):
            list(runs.step())
        runs.add(message(number, runs.next_step, length), NO_STOPS)
        for run in runs.runs:
            assert check_trace(run.trace(TraceStatus.UNFINISHED)) == []
    traces = finished(runs)
    assert [check_trace(trace) for trace in traces] == [[], []]
    assert all(result.delivered_step is not None for trace in traces for result in request_results(trace))
