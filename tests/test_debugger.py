"""A session: history is history, forks have the same past, what people do in mid-run keeps every rule of scheduling."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.check import check_trace
from batchviz.debug_run import DebugError
from batchviz.debug_start import RecordedStart, ScriptedStart, TraceStart
from batchviz.debugger import PHASES, DebugSession, Phase, is_same_step
from batchviz.prefill import PrefillMode
from batchviz.recordings import load_recording
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import Trace, TraceStatus
from batchviz.trace_file import read_traces, trace_to_json, traces_from_json, write_traces

LENGTHS = (3, 20, 5, 9, 12, 4, 8)


def scenario() -> Scenario:
    requests = (
        ScenarioRequest(f"r{i}", length, prompt_tokens=6 + i, output_tokens=length, arrival=2 * (i // 3))
        for i, length in enumerate(LENGTHS)
    )
    return Scenario("made-up", "Made up", tuple(requests))


def new_session(policy: Policy = Policy.STATIC, slots: int = 3) -> DebugSession:
    return DebugSession(ScriptedStart(scenario(), 256), make_config(policy, slots, 256))


def to_the_end(session: DebugSession) -> Trace:
    while session.has_more:
        session.step()
    return session.trace


def test_stepping_is_the_run() -> None:
    session = new_session()
    assert to_the_end(session) == scripted_run(scenario(), make_config(Policy.STATIC, 3, 256)).finish()
    with pytest.raises(DebugError, match="the run is over"):
        session.step()


def test_back_and_forward_show_the_same_and_compute_nothing() -> None:
    session = new_session()
    made = [session.step() for _ in range(9)]
    assert [session.back() for _ in range(8)] == made[-2::-1]
    assert session.num_steps == 9
    assert [session.step() for _ in range(8)] == made[1:]
    assert session.num_steps == 9
    assert session.goto(3) is made[3]
    assert session.goto(11).snapshot.step == 11


def test_before_the_first_and_after_the_last_are_said() -> None:
    session = new_session()
    with pytest.raises(DebugError, match="no step has been made yet"):
        session.facts()
    with pytest.raises(DebugError, match="no step has been made yet"):
        session.back()
    session.step()
    with pytest.raises(DebugError, match="this is the first step"):
        session.back()
    with pytest.raises(DebugError, match=r"the run has \d+ steps; the last one is \d+"):
        session.goto(500)
    assert session.shown == session.num_steps - 1


def test_a_step_is_revealed_phase_by_phase() -> None:
    session = new_session()
    assert [session.step_into() for _ in range(8)] == [*PHASES, *PHASES[:2]]
    assert session.num_steps == 2
    session.step()
    assert (session.shown, session.phase) == (2, Phase.RELEASE)


def test_events_are_found_in_both_directions() -> None:
    session = new_session(Policy.CONTINUOUS)
    forwards = []
    while True:
        try:
            forwards.append(session.next_event().snapshot.step)
        except DebugError:
            break
    events = sorted({event.step for event in session.trace.events()})
    assert forwards == events
    assert [session.previous_event().snapshot.step for _ in events[:-1]] == events[-2::-1]
    with pytest.raises(DebugError, match="nothing happened before"):
        session.previous_event()


def test_an_unfinished_run_is_a_valid_trace_and_opens_again(tmp_path: Path) -> None:
    session = new_session()
    for _ in range(7):
        session.step()
    path = tmp_path / "half.trace.json"
    write_traces(path, (session.trace,))
    (trace,) = read_traces(path)
    assert (trace, trace.status) == (session.trace, TraceStatus.UNFINISHED)
    assert check_trace(trace) == []
    opened = DebugSession(TraceStart(trace), trace.config)
    assert opened.goto(6) == session.facts()
    assert not opened.has_more
    with pytest.raises(DebugError, match="only a complete one can be forked"):
        opened.fork(make_config(Policy.CONTINUOUS, 3, 256))
    with pytest.raises(DebugError, match="can be looked at"):
        opened.abort("r1")


def test_a_complete_trace_opens_and_forks(tmp_path: Path) -> None:
    recording = load_recording("four-slots")[0]
    opened = DebugSession(TraceStart(recording), recording.config)
    assert opened.goto(20).snapshot == recording.steps[20]
    forked = opened.fork(make_config(Policy.CONTINUOUS, 4))
    assert all(is_same_step(forked.facts(step).snapshot, recording.steps[step]) for step in range(21))
    assert check_trace(to_the_end(forked)) == []
    assert len(forked.trace.steps) < len(recording.steps)


def test_a_fork_has_the_same_past_and_another_future() -> None:
    session = new_session(Policy.STATIC)
    session.goto(10)
    forked = session.fork(make_config(Policy.CONTINUOUS, 4, 256))
    assert [forked.facts(step) for step in range(11)] == [session.facts(step) for step in range(11)]
    assert (forked.shown, session.shown, session.num_steps) == (10, 10, 11)
    trace = to_the_end(forked)
    assert check_trace(trace) == []
    assert trace.config_at(10).policy is Policy.STATIC
    assert trace.config_at(11).policy is Policy.CONTINUOUS
    assert [len(step.slots) for step in trace.steps[9:13]] == [3, 3, 4, 4]
    assert trace.num_slots == 4
    (again,) = traces_from_json(trace_to_json(trace))
    assert again == trace
    assert len(trace.steps) < len(to_the_end(session).steps)


def test_slots_that_are_occupied_stay() -> None:
    session = new_session(Policy.CONTINUOUS)
    session.goto(2)
    with pytest.raises(ValueError, match="slot 2 is occupied, so there must be at least 3 slots"):
        session.fork(make_config(Policy.CONTINUOUS, 2, 256))


def test_only_what_lies_ahead_can_be_changed() -> None:
    session = new_session()
    session.goto(9)
    session.goto(4)
    with pytest.raises(DebugError, match="step 4 is not the last"):
        session.abort("r1")
    with pytest.raises(DebugError, match="step 4 is not the last"):
        session.inject(ScenarioRequest("x", 3, prompt_tokens=5, output_tokens=3))
    forked = session.fork(make_config(Policy.STATIC, 3, 256))
    forked.abort("r1")
    assert forked.step().snapshot.aborted == ("r1",)
    with pytest.raises(DebugError, match="no request has the id 'nobody'"):
        forked.abort("nobody")


def test_a_recording_answers_no_new_request() -> None:
    session = DebugSession(RecordedStart(load_recording("four-slots")), make_config(Policy.CONTINUOUS, 4))
    session.step()
    with pytest.raises(DebugError, match="has no tokens for a new request"):
        session.inject(ScenarioRequest("x", 3, prompt="hello"))


deeds = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.one_of(
            st.tuples(st.just("abort"), st.sampled_from([f"r{i}" for i in range(len(LENGTHS))])),
            st.tuples(st.just("inject"), st.integers(1, 9)),
            st.tuples(
                st.just("fork"),
                st.tuples(st.sampled_from([Policy.STATIC, Policy.CONTINUOUS]), st.integers(1, 5), st.booleans()),
            ),
        ),
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(deeds, st.sampled_from([Policy.STATIC, Policy.CONTINUOUS]))
def test_whatever_people_do_every_rule_of_scheduling_holds(
    deeds: list[tuple[int, tuple[str, object]]], policy: Policy
) -> None:
    session = new_session(policy)
    for number, (steps, (what, how)) in enumerate(deeds):
        for _ in range(steps):
            if session.has_more:
                session.step()
        if what == "abort":
            session.abort(str(how))
        elif what == "inject":
            length = int(str(how))
            arrival = float(session.num_steps)
            session.inject(
                ScenarioRequest(f"x{number}", length, prompt_tokens=4, output_tokens=length, arrival=arrival)
            )
        elif session.shown is not None:
            to, slots, chunked = how  # type: ignore[misc]
            config = make_config(
                to,
                slots,
                256,
                prefill=PrefillMode.CHUNKED if chunked else PrefillMode.MIXED,
                max_batched_tokens=max(slots, 7) if chunked else None,
            )
            seated = [slot for slot, sequence in enumerate(session._started.run.engine._scheduler.slots) if sequence]
            if seated and seated[-1] >= config.num_slots:
                with pytest.raises(ValueError, match="is occupied"):
                    session.fork(config)
                continue
            forked = session.fork(config)
            past = range(session.num_steps)
            assert [forked.facts(step) for step in past] == [session.facts(step) for step in past]
            session = forked
    trace = to_the_end(session)
    assert check_trace(trace) == []
    assert trace.status is TraceStatus.COMPLETE


def test_a_fork_goes_on_counting_whose_turn_it_is() -> None:
    """Chunked prefill feeds whoever was admitted first; a newcomer after a fork comes after those who read already."""
    requests = tuple(ScenarioRequest(f"r{i}", 4, prompt_tokens=40, output_tokens=4) for i in range(3))
    chunked = make_config(Policy.CONTINUOUS, 3, 256, prefill=PrefillMode.CHUNKED, max_batched_tokens=50)
    session = DebugSession(ScriptedStart(Scenario("long", "Long", requests), 256), chunked)
    session.step()
    wider = make_config(Policy.CONTINUOUS, 4, 256, prefill=PrefillMode.CHUNKED, max_batched_tokens=50)
    forked = session.fork(wider)
    forked.inject(ScenarioRequest("x", 4, prompt_tokens=40, output_tokens=4, arrival=1))
    assert check_trace(to_the_end(forked)) == []
