"""A child that hangs, and visitors that vanish: told with a passed clock, so nobody waits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from batchviz.child_process import ChildEndedError
from batchviz.jobs import JobState, JobView
from batchviz.patience import HANGS_AFTER_S, PATIENCE_S
from batchviz.runs import DEFAULT_SLOT_CAPACITY, make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import TraceStatus
from batchviz.trace_file import header_line, step_line
from batchviz.worker import ABANDONED_AFTER_S, Worker
from tests.test_worker import SILENT_CHILD, wait_for

CONFIG = make_config(Policy.STATIC, 2)

STALLING_CHILD = """
import json, sys, time
header, step = sys.argv[1:3]
for line in sys.stdin:
    message = json.loads(line)
    say = lambda kind, **rest: print(json.dumps({"kind": kind, "job": message.get("job"), **rest}), flush=True)
    if message["kind"] == "run":
        say("headers", lines=[header])
        say("step", run=0, line=step)
        if "passing" in message["scenario"]:
            say("run_over", run=0, status="complete")
            say("done")
    elif message["kind"] == "cancel":
        say("run_over", run=0, status="cancelled")
        say("cancelled")
    elif message.get("what") == "quick":
        print(json.dumps({"kind": "answer", "ask": message["ask"]}), flush=True)
"""


class Hands:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def scenario_of(title: str, prompt_tokens: int = 8) -> Scenario:
    return Scenario("s", title, (ScenarioRequest("r", 1, prompt_tokens=prompt_tokens, output_tokens=1),))


def stalling(prompt_tokens: int = 8) -> tuple[str, ...]:
    """One step of a run comes, and nothing more unless the scenario is called passing."""
    run = scripted_run(
        scenario_of("x", prompt_tokens), make_config(Policy.STATIC, 2, max(prompt_tokens + 1, DEFAULT_SLOT_CAPACITY))
    )
    return (sys.executable, "-c", STALLING_CHILD, header_line(run.trace(TraceStatus.UNFINISHED)), step_line(run.step()))


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def worker(clock: Hands) -> Iterator[Worker]:
    worker = Worker(clock, command=stalling())
    yield worker
    worker.close()


def view_of(worker: Worker, job: int) -> JobView:
    view = worker.view(job)
    assert view is not None
    return view


def begun(worker: Worker, title: str = "stalls") -> int:
    """A job whose first step has come."""
    job = worker.submit(scenario_of(title), [CONFIG])
    wait_for(lambda: view_of(worker, job).num_steps == (1,), 30)
    return job


def keep_looking(worker: Worker, clock: Hands, seconds: float, *jobs: int) -> None:
    """So much time goes by, and visitors look all the while."""
    until_s = clock.now_s + seconds
    while clock.now_s < until_s:
        clock.now_s = min(clock.now_s + ABANDONED_AFTER_S / 2, until_s)
        for job in jobs:
            worker.view(job)


def test_a_child_that_hangs_in_mid_run_is_ended_said_and_those_behind_go_on(worker: Worker, clock: Hands) -> None:
    job = begun(worker)
    behind = worker.submit(scenario_of("passing"), [CONFIG])
    first_pid = worker.child_pid
    keep_looking(worker, clock, HANGS_AFTER_S, job, behind)
    assert view_of(worker, job).state is JobState.RUNNING
    keep_looking(worker, clock, 1, job, behind)
    view = view_of(worker, job)
    assert view.state is JobState.FAILED
    assert view.message == (
        "the model's process said nothing for 121 seconds and was ended; the next run starts a new one"
    )
    assert len(worker.traces(job)[0].steps) == 1, "what it gave so far stays"
    wait_for(lambda: view_of(worker, behind).state is JobState.DONE, 30)
    assert worker.child_pid != first_pid


def test_a_submitted_run_finds_a_hung_child_too(worker: Worker, clock: Hands) -> None:
    begun(worker)
    pid = worker.child_pid
    clock.now_s += HANGS_AFTER_S + 1  # and its visitor has gone meanwhile
    fresh = worker.submit(scenario_of("passing"), [CONFIG])
    assert worker.child_pid != pid
    wait_for(lambda: view_of(worker, fresh).state is JobState.DONE, 30)


def test_long_prompts_are_given_the_time_to_read_them(clock: Hands) -> None:
    worker = Worker(clock, command=stalling(prompt_tokens=50_000))
    job = begun(worker)
    keep_looking(worker, clock, HANGS_AFTER_S + 900, job)
    assert view_of(worker, job).state is JobState.RUNNING
    keep_looking(worker, clock, 200, job)
    assert view_of(worker, job).state is JobState.FAILED
    worker.close()


def test_a_model_that_loads_is_given_longer(clock: Hands) -> None:
    worker = Worker(clock, command=SILENT_CHILD)
    job = worker.submit(scenario_of("x"), [CONFIG])
    keep_looking(worker, clock, PATIENCE_S, job)
    assert view_of(worker, job).state is JobState.LOADING
    keep_looking(worker, clock, 1, job)
    assert view_of(worker, job).state is JobState.FAILED
    worker.close()


def test_a_child_that_has_nothing_to_do_may_be_silent(worker: Worker, clock: Hands) -> None:
    job = begun(worker, "passing")
    wait_for(lambda: view_of(worker, job).state is JobState.DONE, 30)
    pid = worker.child_pid
    clock.now_s += 100_000
    assert worker.ask({"kind": "debug", "what": "quick"})["kind"] == "answer"
    again = begun(worker, "passing")
    wait_for(lambda: view_of(worker, again).state is JobState.DONE, 30)
    assert worker.child_pid == pid


def waiting(ask: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Somebody who asks in a thread of their own, and what came of it."""
    ends: list[BaseException] = []

    def run() -> None:
        try:
            ask()
        except (ChildEndedError, TimeoutError) as error:
            ends.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ends


def test_who_waits_for_an_answer_of_a_hung_child_is_told(worker: Worker, clock: Hands) -> None:
    worker.ask({"kind": "debug", "what": "quick"})  # its model is there
    thread, ends = waiting(lambda: worker.ask({"kind": "debug", "what": "slow"}))
    wait_for(lambda: worker._child.is_asked, 30)
    clock.now_s += HANGS_AFTER_S + 1
    thread.join(30)
    assert [str(end) for end in ends] == ["the model's process said nothing for 121 seconds and was ended"]
    assert worker.ask({"kind": "debug", "what": "quick"})["kind"] == "answer", "there is a new one"


def test_patience_with_a_question_ends(worker: Worker, clock: Hands) -> None:
    thread, ends = waiting(lambda: worker.ask({"kind": "debug", "what": "slow"}, patience_s=5))
    wait_for(lambda: worker._child.is_asked, 30)
    clock.now_s += 6
    thread.join(30)
    assert [type(end) for end in ends] == [TimeoutError]


def test_a_child_that_reads_nothing_holds_up_nobody(clock: Hands) -> None:
    worker = Worker(clock, command=(sys.executable, "-c", "import time; time.sleep(600)"))
    long = Scenario("s", "S", tuple(ScenarioRequest(f"r{i}", 1, prompt="word " * 3000) for i in range(13)))
    job = worker.submit(long, [CONFIG])  # more than a pipe holds
    clock.now_s += PATIENCE_S + 1
    assert view_of(worker, job).state is JobState.FAILED
    worker.close()


def test_a_visitor_who_comes_back_in_time_finds_the_run_as_it_was(worker: Worker, clock: Hands) -> None:
    job = begun(worker)
    clock.now_s += ABANDONED_AFTER_S - 1
    assert view_of(worker, job).state is JobState.RUNNING
    assert len(worker.traces(job)[0].steps) == 1


def test_a_run_whose_visitor_stays_away_is_cancelled_and_gives_way(worker: Worker, clock: Hands) -> None:
    job = begun(worker)
    clock.now_s += ABANDONED_AFTER_S + 1
    behind = worker.submit(scenario_of("passing"), [CONFIG])
    wait_for(lambda: view_of(worker, behind).state is JobState.DONE, 30)
    late = worker.view(job)
    assert late is None or late.state is JobState.CANCELLED
