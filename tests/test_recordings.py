"""The shipped recordings: whole, honest, small; and re-scheduling them gives back the schedule that was recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from batchviz.check import check_trace
from batchviz.metrics import request_results
from batchviz.presets import PRESET_NAMES, load_scenario
from batchviz.record import recorded_configs
from batchviz.recordings import ASSETS, load_recording, rescheduled
from batchviz.runner import StepCost
from batchviz.runs import make_config, replay_run
from batchviz.scheduler import Policy
from batchviz.trace import RunnerKind, Seconds, Trace, TraceStatus


@pytest.mark.parametrize("path", sorted((ASSETS / "traces").iterdir()), ids=lambda path: path.name)
def test_a_shipped_trace_is_small(path: Path) -> None:
    assert path.stat().st_size <= 150_000


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_recording_is_complete_keeps_every_rule_and_says_where_it_comes_from(name: str) -> None:
    for trace in load_recording(name):
        assert trace.status is TraceStatus.COMPLETE
        assert check_trace(trace) == []
        assert trace.origin.runner is RunnerKind.RECORDED
        assert trace.origin.seconds is Seconds.MEASURED
        assert trace.origin.model is not None
        assert trace.origin.model.exact is True
        assert trace.origin.model.sha256
        assert trace.origin.model.stop_token_ids
        assert trace.origin.machine
        assert trace.origin.date
        assert set(trace.origin.versions) >= {"batchviz", "torch", "transformers", "python"}


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_recording_is_of_the_preset_as_it_is_now(name: str) -> None:
    scenario = load_scenario(name)
    traces = load_recording(name)
    assert [trace.config for trace in traces] == recorded_configs(scenario)
    for trace in traces:
        asked = [(r.id, r.prompt, r.max_tokens, r.arrival) for r in scenario.requests]
        assert [(r.id, r.prompt, r.max_tokens, r.arrival) for r in trace.scenario.requests] == asked


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_policy_gave_a_request_the_same_answer(name: str) -> None:
    answers = [{r.request.id: r.output for r in request_results(trace)} for trace in load_recording(name)]
    assert all(answer == answers[0] for answer in answers)


def schedule(trace: Trace) -> list[tuple[object, ...]]:
    return [(s.slots, s.admitted, s.finished, s.delivered, s.head, s.head_reason) for s in trace.steps]


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_replay_as_recorded_is_the_recorded_schedule(name: str) -> None:
    recordings = load_recording(name)
    for trace in recordings:
        replay = replay_run(recordings, trace.config).finish()
        assert schedule(replay) == schedule(trace)
        assert replay.origin.seconds is Seconds.MODELLED
        assert 0.5 < replay.duration_s / trace.duration_s < 2


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("policy", list(Policy))
def test_any_knob_gives_a_schedule_that_keeps_every_rule(policy: Policy, slots: int) -> None:
    trace = rescheduled(load_recording("four-slots"), make_config(policy, slots))
    assert check_trace(trace) == []
    assert [r.output for r in request_results(trace)] == [
        r.output for r in request_results(load_recording("four-slots")[0])
    ]


def test_an_unfinished_recording_is_not_replayed() -> None:
    (trace, _) = load_recording("four-slots")
    with pytest.raises(ValueError, match="a recording that is cancelled has not all the tokens"):
        replay_run([replace(trace, status=TraceStatus.CANCELLED)], trace.config)


@pytest.mark.parametrize("fitted_on", ["four-slots", "eight-chats"])
def test_measured_seconds_are_what_step_counts_and_a_cost_model_of_another_run_predict(fitted_on: str) -> None:
    """Continuous over static, on sixteen chats: counted work explains the measured gain."""
    others = [step for trace in load_recording(fitted_on) for step in trace.steps]
    cost = StepCost.fit([step.num_rows for step in others], [step.duration_s for step in others])
    runs = {trace.config.policy: trace for trace in load_recording("sixteen-chats")}
    predicted = {policy: sum(cost(step.num_rows) for step in trace.steps) for policy, trace in runs.items()}
    measured = runs[Policy.STATIC].duration_s / runs[Policy.CONTINUOUS].duration_s
    assert measured > 1.3
    assert predicted[Policy.STATIC] / predicted[Policy.CONTINUOUS] == pytest.approx(measured, rel=0.1)
