"""Debugging sessions whose engine is in the worker's child: the same steps as beside it, and what is left when it dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from batchviz.check import check_trace
from batchviz.debug_remote import RemoteStart
from batchviz.debug_run import DebugError
from batchviz.debugger import DebugSession, is_same_step
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import TraceStatus
from batchviz.worker import Worker

pytestmark = pytest.mark.model

REQUESTS = tuple(ScenarioRequest(f"r{i}", 9, prompt=f"Count from {i} to ten.") for i in range(3))
SCENARIO = Scenario("far", "Far", REQUESTS, num_slots=2)
STATIC = make_config(Policy.STATIC, 2)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(time.monotonic)
    yield worker
    worker.close()


@pytest.fixture
def session(worker: Worker) -> DebugSession:
    return DebugSession(RemoteStart(worker.ask, SCENARIO), STATIC)


def test_a_run_is_stepped_to_its_end_and_its_trace_keeps_every_rule(session: DebugSession) -> None:
    assert session.trace.status is TraceStatus.UNFINISHED
    while session.has_more:
        session.step()
        seen = session.seen()
        assert seen is not None
        assert len(seen.likeliest) == sum(slot.token_id is not None for slot in session.facts().snapshot.slots)
    assert session.trace.status is TraceStatus.COMPLETE
    assert check_trace(session.trace) == []
    session.goto(0)
    seen = session.seen()
    assert seen is not None
    assert len(seen.likeliest[0]) == 10


def test_what_is_done_in_mid_run_happens_far_away_as_well(session: DebugSession) -> None:
    session.goto(3)
    traced = session.inject(ScenarioRequest("late", 4, prompt="Say hi.", arrival=session.now))
    session.abort("r1")
    facts = session.step()
    assert facts.snapshot.arrived == ("late",)
    assert facts.snapshot.aborted == ("r1",)
    forked = session.fork(make_config(Policy.CONTINUOUS, 4))
    assert all(is_same_step(one, other) for one, other in zip(forked.trace.steps, session.trace.steps, strict=True))
    while forked.has_more:
        forked.step()
    assert check_trace(forked.trace) == []
    assert forked.trace.text("late")
    assert traced.prompt_token_ids
    forked.end()
    with pytest.raises(DebugError, match="begin another session"):
        forked._started.run.step()


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (ScenarioRequest("r0", 4, prompt="Twice."), "r0"),
        (ScenarioRequest("novel", 4, prompt="word " * 2000), "shorten the prompt"),
    ],
)
def test_what_will_not_do_is_refused_with_a_sentence(
    session: DebugSession, request_: ScenarioRequest, sentence: str
) -> None:
    session.step()
    with pytest.raises(ValueError, match=sentence):
        session.inject(request_)
    session.step()


def test_steps_are_answered_while_a_live_run_goes_on(worker: Worker, session: DebugSession) -> None:
    long = Scenario("long", "Long", (ScenarioRequest("a", 400, prompt="Tell a story.", output_tokens=400),))
    job = worker.submit(long, [STATIC])
    while not (worker.traces(job) and worker.traces(job)[0].steps):
        time.sleep(0.05)
    for _ in range(3):
        session.step()
    before = worker.traces(job)[0]
    assert before.status is TraceStatus.UNFINISHED
    worker.cancel(job)
    assert [slot.request_id for slot in session.facts().snapshot.slots] == ["r0", "r1"]


def test_a_step_costs_little_more_than_the_model_takes(session: DebugSession) -> None:
    beyond = []
    for _ in range(9):
        started_s = time.perf_counter()
        snapshot = session.step().snapshot
        beyond.append(time.perf_counter() - started_s - snapshot.duration_s)
    assert sorted(beyond)[len(beyond) // 2] < 0.1  # a few milliseconds where nobody else is at work


def test_a_child_that_dies_is_said_and_what_was_seen_stays(worker: Worker, session: DebugSession) -> None:
    session.goto(3)
    assert worker.child_pid is not None
    os.kill(worker.child_pid, signal.SIGKILL)
    with pytest.raises(DebugError, match="begin another session"):
        session.step()
    assert session.num_steps == 4
    assert session.goto(1).snapshot.step == 1
    with pytest.raises(DebugError, match="begin another session"):
        session.goto(4)
    again = DebugSession(RemoteStart(worker.ask, SCENARIO), STATIC)
    again.goto(3)
    assert is_same_step(again.facts().snapshot, session.facts(3).snapshot)
