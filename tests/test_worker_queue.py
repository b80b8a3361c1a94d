"""Many viewers, one worker: turns, shared runs, one run each, the log's line. The child here only counts, in lines."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator

import pytest

from batchviz.jobs import JobState, JobView, QueueFullError
from batchviz.limits import Limits
from batchviz.run_log import anonymous
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace_file import step_line
from batchviz.worker import ABANDONED_AFTER_S, Worker
from tests.builders import scripted_trace
from tests.test_worker import wait_for

CONFIGS = [make_config(Policy.STATIC, 2), make_config(Policy.CONTINUOUS, 2)]
ONE_CONFIG = CONFIGS[:1]

# Begins every job at once and goes on with it until it hears of a cancel or of a job called "end".
OBEDIENT_CHILD = """
import json, sys
def say(**message): print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    job = message["job"]
    if message["kind"] == "run":
        say(kind="headers", job=job, lines=["{}" for _ in message["configs"]])
        say(kind="step", job=job, run=0, line=sys.argv[1])
    elif message["kind"] == "cancel":
        say(kind="cancelled", job=job)
    elif message["kind"] == "add":
        for run in range(2):
            say(kind="run_over", job=job, run=run, status="complete")
        say(kind="done", job=job)
"""


STEP = step_line(scripted_trace(Policy.STATIC, 2, (1, 1)).steps[0])
COMMAND = (sys.executable, "-c", OBEDIENT_CHILD, STEP)


def scenario_of(prompt: str, num_tokens: int = 10) -> Scenario:
    return Scenario("live", "Live", (ScenarioRequest(id="r", prompt=prompt, max_tokens=num_tokens),))


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def worker(clock: Clock) -> Iterator[Worker]:
    worker = Worker(clock, command=COMMAND, limits=Limits(max_runs_per_viewer=5))
    yield worker
    worker.close()


def view_of(worker: Worker, job: int, viewer: str) -> JobView:
    view = worker.view(job, viewer)
    assert view is not None
    return view


def wait_until_running(worker: Worker, job: int, viewer: str) -> None:
    wait_for(lambda: view_of(worker, job, viewer).num_steps[:1] == (1,), 20)


def test_one_viewers_five_runs_stand_behind_the_first_of_everybody_else(worker: Worker) -> None:
    eager = [worker.submit(scenario_of(f"e{i}"), CONFIGS, viewer="eager") for i in range(5)]
    others = [worker.submit(scenario_of(name), CONFIGS, viewer=name) for name in ("b", "c")]
    assert [view_of(worker, job, name).place for job, name in zip(others, "bc", strict=True)] == [1, 2]
    assert [view_of(worker, job, "eager").place for job in eager] == [0, 3, 4, 5, 6]


def test_a_viewer_has_one_live_run_at_a_time(clock: Clock) -> None:
    worker = Worker(clock, command=COMMAND)
    first = worker.submit(scenario_of("a"), CONFIGS, viewer="one")
    with pytest.raises(QueueFullError, match="you have a live run already; wait until it is over, or cancel it"):
        worker.submit(scenario_of("b"), CONFIGS, viewer="one")
    other = worker.submit(scenario_of("b"), CONFIGS, viewer="two")
    with pytest.raises(QueueFullError, match="a live run already"):
        worker.submit(scenario_of("b"), CONFIGS, viewer="one")  # nor by joining somebody else's
    worker.cancel(first, "one")
    wait_for(lambda: view_of(worker, first, "one").state.is_over, 20)
    assert worker.submit(scenario_of("b"), CONFIGS, viewer="one") == other
    worker.close()


def test_who_asks_for_what_runs_or_waits_already_gets_the_same_job(worker: Worker) -> None:
    running = worker.submit(scenario_of("a"), CONFIGS, viewer="one")
    waiting = worker.submit(scenario_of("b"), CONFIGS, viewer="two")
    wait_until_running(worker, running, "one")
    assert worker.submit(scenario_of("a"), CONFIGS, viewer="three") == running
    assert worker.submit(scenario_of("b"), CONFIGS, viewer="four") == waiting
    assert [view_of(worker, job, "three").num_viewers for job in (running, waiting)] == [2, 2]
    assert worker.submit(scenario_of("a"), ONE_CONFIG, viewer="five") not in (running, waiting)
    assert worker.submit(scenario_of("a", 11), CONFIGS, viewer="six") not in (running, waiting)


def test_a_chat_and_a_run_of_nobody_in_particular_are_never_shared(worker: Worker) -> None:
    jobs = [
        worker.submit(scenario_of("a"), CONFIGS, viewer="one", is_chat=True),
        worker.submit(scenario_of("a"), CONFIGS, viewer="two", is_chat=True),
        worker.submit(scenario_of("a"), CONFIGS, viewer="three"),
        worker.submit(scenario_of("a"), CONFIGS),
        worker.submit(scenario_of("a"), CONFIGS),
    ]
    assert len(set(jobs)) == len(jobs)


def test_a_shared_run_ends_only_when_all_have_cancelled(worker: Worker) -> None:
    job = worker.submit(scenario_of("a"), CONFIGS, viewer="one")
    assert worker.submit(scenario_of("a"), CONFIGS, viewer="two") == job
    wait_until_running(worker, job, "two")
    worker.cancel(job, "one")
    assert view_of(worker, job, "one").state is JobState.CANCELLED
    assert view_of(worker, job, "two").state is JobState.RUNNING
    assert view_of(worker, job, "two").num_viewers == 1
    worker.cancel(job, "two")
    wait_for(lambda: view_of(worker, job, "two").state is JobState.CANCELLED, 20)


def test_a_run_that_is_being_cancelled_is_nobody_elses(worker: Worker) -> None:
    job = worker.submit(scenario_of("a"), CONFIGS, viewer="one")
    worker.cancel(job, "one")
    assert worker.submit(scenario_of("a"), CONFIGS, viewer="two") != job


def test_who_left_without_a_word_holds_no_shared_run(worker: Worker, clock: Clock) -> None:
    job = worker.submit(scenario_of("a"), CONFIGS, viewer="one")
    worker.submit(scenario_of("a"), CONFIGS, viewer="two")
    wait_until_running(worker, job, "two")
    clock.now_s = ABANDONED_AFTER_S - 1
    view_of(worker, job, "two")
    clock.now_s = ABANDONED_AFTER_S + 1  # "one" was not seen for longer
    assert view_of(worker, job, "two").num_viewers == 1
    worker.cancel(job, "two")
    wait_for(lambda: view_of(worker, job, "two").state is JobState.CANCELLED, 20)


def test_the_expected_wait_comes_from_what_whole_runs_took(worker: Worker, clock: Clock) -> None:
    first = worker.submit(scenario_of("a", 10), CONFIGS, viewer="one", is_chat=True)
    second = worker.submit(scenario_of("b", 20), CONFIGS, viewer="two")
    third = worker.submit(scenario_of("c", 20), CONFIGS, viewer="three")
    wait_until_running(worker, first, "one")
    assert view_of(worker, second, "two").wait_s is None
    clock.now_s = 10.0
    worker.add(first, "end")  # 2 runs of at most 10 tokens each: 0.5 s a token
    wait_until_running(worker, second, "two")
    assert view_of(worker, second, "two").wait_s is None  # it waits no more
    assert view_of(worker, third, "three").wait_s == pytest.approx(20.0)
    clock.now_s = 16.0
    assert view_of(worker, third, "three").wait_s == pytest.approx(14.0)


def test_every_run_that_ends_leaves_one_line_without_a_word_of_its_prompt(
    worker: Worker, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="batchviz")
    first = worker.submit(scenario_of("zebrafish"), CONFIGS, viewer="key-of-one", is_chat=True)
    second = worker.submit(scenario_of("zebrafish again"), CONFIGS, viewer="key-of-two")
    wait_until_running(worker, first, "key-of-one")
    clock.now_s = 10.0
    worker.add(first, "zebrafish")
    wait_until_running(worker, second, "key-of-two")
    clock.now_s = 14.0
    worker.cancel(second, "key-of-two")
    wait_for(lambda: view_of(worker, second, "key-of-two").state.is_over, 20)
    assert [record.getMessage() for record in caplog.records] == [
        f"live run 1 viewer={anonymous('key-of-one')} place=0 waited=0.0s ran=10.0s steps=1 state=done",
        f"live run 2 viewer={anonymous('key-of-two')} place=1 waited=10.0s ran=4.0s steps=1 state=cancelled",
    ]
    assert "zebrafish" not in caplog.text
    assert "key-of" not in caplog.text


def test_a_child_that_died_is_known_until_another_lives(worker: Worker) -> None:
    assert worker.problem is None
    broken = Worker(time.monotonic, command=(sys.executable, "-c", "raise SystemExit(7)"))
    broken.submit(scenario_of("a"), CONFIGS)
    wait_for(lambda: broken.problem is not None, 20)
    assert "has died" in str(broken.problem)
    broken.close()
