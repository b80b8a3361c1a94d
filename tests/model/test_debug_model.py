"""Debugging the real model: the likeliest tokens of every step are kept, a fork's past has the same tokens."""

from __future__ import annotations

import time

import pytest

from batchviz.check import check_trace
from batchviz.debug_model import ModelStart
from batchviz.debugger import DebugSession
from batchviz.live import LiveModel
from batchviz.model.likeliest import NUM_KEPT
from batchviz.model.load import LoadedModel
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy

pytestmark = pytest.mark.model

QUESTIONS = ("Is the sky blue? Answer yes or no.", "Name three fruits.", "What is the capital of France?")

REQUESTS = tuple(ScenarioRequest(f"r{i}", 12, prompt=prompt) for i, prompt in enumerate(QUESTIONS))
SCENARIO = Scenario("asked", "Asked", REQUESTS, num_slots=2)


@pytest.fixture(scope="module")
def session(real32: LoadedModel) -> DebugSession:
    start = ModelStart(LiveModel(real32, float), SCENARIO, 1024)
    session = DebugSession(start, make_config(Policy.STATIC, 2))
    session.goto(5)
    return session


def test_the_likeliest_tokens_of_every_step_are_kept(session: DebugSession) -> None:
    for step in range(6):
        snapshot = session.goto(step).snapshot
        seen = session.seen()
        assert seen is not None
        likeliest = seen.likeliest
        assert set(likeliest) == {number for number, slot in enumerate(snapshot.slots) if slot.token_id is not None}
        for slot, candidates in likeliest.items():
            assert len(candidates) == NUM_KEPT
            shares = [candidate.probability for candidate in candidates]
            assert shares == sorted(shares, reverse=True)
            assert 0 < sum(shares) <= 1.0001
            assert candidates[0].token_id == snapshot.slots[slot].token_id  # greedy
    assert session.goto(0).snapshot.slots[0].text == "No"
    seen = session.seen()
    assert seen is not None
    assert "Yes" in [candidate.text for candidate in seen.likeliest[0]]


def test_a_step_says_where_its_time_went(real32: LoadedModel) -> None:
    start = ModelStart(LiveModel(real32, time.perf_counter), SCENARIO, 1024)
    session = DebugSession(start, make_config(Policy.CONTINUOUS, 2))
    snapshot = session.goto(3).snapshot
    seen = session.seen()
    assert seen is not None
    assert seen.linear_s is not None
    assert seen.attention_s is not None
    assert 0 < seen.attention_s < snapshot.forward_s
    assert 0.3 * snapshot.forward_s < seen.linear_s < snapshot.forward_s
    assert seen.linear_s + seen.attention_s < snapshot.forward_s


def test_looking_changes_no_token(session: DebugSession, real32: LoadedModel) -> None:
    plain = LiveModel(real32, float)
    run = plain.start(session.trace.scenario, make_config(Policy.STATIC, 2))
    watched = [[slot.token_id for slot in session.facts(step).snapshot.slots] for step in range(6)]
    assert [[slot.token_id for slot in run.step().slots] for _ in range(6)] == watched


def test_a_fork_with_more_slots_has_the_same_past_and_takes_a_new_question(session: DebugSession) -> None:
    session.goto(5)
    forked = session.fork(make_config(Policy.CONTINUOUS, 4))
    forked.inject(ScenarioRequest("new", 5, prompt="Say hi.", arrival=6))
    snapshot = forked.step().snapshot
    assert [admission.request_id for admission in snapshot.admitted] == ["r2", "new"]
    while forked.has_more:
        forked.step()
    assert check_trace(forked.trace) == []
    assert "Paris" in (forked.trace.text("r2") or "")
    assert forked.trace.text("new")
