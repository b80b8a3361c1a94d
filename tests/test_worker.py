"""The worker: jobs in a child process, the real model in it, and what is left when the child dies."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from batchviz.check import check_trace
from batchviz.jobs import JobState, JobView, QueueFullError
from batchviz.limits import Limits
from batchviz.metrics import request_results
from batchviz.prefill import PrefillMode
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import RunnerKind, TraceStatus
from batchviz.worker import Worker

CONFIGS = [make_config(Policy.STATIC, 2), make_config(Policy.CONTINUOUS, 2)]


def scenario_of(*max_tokens: int) -> Scenario:
    requests = [
        ScenarioRequest(id=f"r{i}", prompt=f"Count to {i + 5}.", max_tokens=n, output_tokens=n)
        for i, n in enumerate(max_tokens)
    ]
    return Scenario(name="live", title="Live", requests=tuple(requests))


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(time.monotonic)
    yield worker
    worker.close()


def state_of(worker: Worker, job: int) -> JobState:
    view = worker.view(job)
    assert view is not None
    return view.state


@pytest.mark.model
def test_a_job_runs_every_configuration_on_the_real_model(worker: Worker) -> None:
    job = worker.submit(scenario_of(3, 12, 5), CONFIGS)
    wait_for(lambda: state_of(worker, job).is_over)
    static, continuous = worker.traces(job)
    assert state_of(worker, job) is JobState.DONE
    assert [trace.status for trace in (static, continuous)] == [TraceStatus.COMPLETE] * 2
    assert check_trace(static) == []
    assert check_trace(continuous) == []
    assert static.origin.runner is RunnerKind.MODEL
    assert static.text("r1") == continuous.text("r1")
    assert static.text("r1")
    assert len(static.steps) == 17
    assert len(continuous.steps) == 12


@pytest.mark.model
def test_steps_come_while_the_run_goes_on_and_cancel_works_within_one_step(worker: Worker) -> None:
    job = worker.submit(scenario_of(900), CONFIGS)
    wait_for(lambda: len(worker.traces(job)) > 0 and len(worker.traces(job)[0].steps) > 3)
    before = len(worker.traces(job)[0].steps)
    worker.cancel(job)
    wait_for(lambda: state_of(worker, job).is_over, 10)
    trace = worker.traces(job)[0]
    assert state_of(worker, job) is JobState.CANCELLED
    assert trace.status is TraceStatus.CANCELLED
    assert len(trace.steps) <= before + 10  # it was stepping while we asked; it does not run to its 900 tokens
    assert check_trace(trace) == []
    assert worker.traces(job)[1].steps == ()


@pytest.mark.model
def test_jobs_wait_their_turn_and_know_their_place(worker: Worker) -> None:
    first = worker.submit(scenario_of(300), CONFIGS)
    second = worker.submit(scenario_of(2), CONFIGS)
    third = worker.submit(scenario_of(2), CONFIGS)
    views = [worker.view(job) for job in (first, second, third)]
    assert [view.place for view in views if view] == [0, 1, 2]
    worker.cancel(second)
    assert state_of(worker, second) is JobState.CANCELLED
    view = worker.view(third)
    assert view is not None
    assert view.place == 1
    worker.cancel(first)
    wait_for(lambda: state_of(worker, third).is_over)
    assert state_of(worker, third) is JobState.DONE


@pytest.mark.model
def test_a_dead_child_is_said_and_the_next_run_starts_a_new_one(worker: Worker) -> None:
    job = worker.submit(scenario_of(900), CONFIGS)
    waiting = worker.submit(scenario_of(2), CONFIGS)
    wait_for(lambda: len(worker.traces(job)) > 0 and len(worker.traces(job)[0].steps) > 3)
    assert worker.child_pid is not None
    os.kill(worker.child_pid, signal.SIGKILL)
    wait_for(lambda: state_of(worker, job).is_over, 10)
    view = worker.view(job)
    assert view is not None
    assert view.state is JobState.FAILED
    assert "ended unexpectedly (exit code -9)" in view.message
    assert len(worker.traces(job)[0].steps) > 3  # what it gave so far stays
    wait_for(lambda: state_of(worker, waiting).is_over)
    assert state_of(worker, waiting) is JobState.DONE


@pytest.mark.model
def test_what_cannot_run_fails_with_a_sentence(worker: Worker) -> None:
    long = Scenario(name="x", title="x", requests=(ScenarioRequest(id="a", prompt="word " * 2000, max_tokens=5),))
    job = worker.submit(long, CONFIGS)
    wait_for(lambda: state_of(worker, job).is_over)
    view = worker.view(job)
    assert view is not None
    assert view.state is JobState.FAILED
    assert "a slot has 1,024; shorten the prompt" in view.message


@pytest.mark.model
def test_the_child_runs_with_the_prefill_mode_and_the_budgets_of_each_pane(worker: Worker) -> None:
    configs = [
        make_config(Policy.CONTINUOUS, 2, prefill=PrefillMode.CHUNKED, max_batched_tokens=8, kv_budget_tokens=80),
        make_config(Policy.STATIC, 2, prefill=PrefillMode.EXCLUSIVE, group_timeout=3),
    ]
    job = worker.submit(scenario_of(2, 3, 2), configs)
    wait_for(lambda: state_of(worker, job).is_over)
    traces = worker.traces(job)
    assert [trace.config for trace in traces] == configs
    assert [check_trace(trace) for trace in traces] == [[], []]
    assert max(step.num_rows for step in traces[0].steps) <= 8


@pytest.mark.model
def test_a_message_joins_every_run_of_a_chat_at_the_same_step(worker: Worker) -> None:
    job = worker.submit(scenario_of(40, 3), CONFIGS, is_chat=True)
    wait_for(lambda: len(worker.traces(job)) > 0 and len(worker.traces(job)[1].steps) > 5)
    worker.add(job, "7 " * 199)  # some 400 tokens
    worker.add(job, "Say hi.")
    wait_for(lambda: state_of(worker, job).is_over)
    static, continuous = worker.traces(job)
    assert state_of(worker, job) is JobState.DONE
    assert [check_trace(trace) for trace in (static, continuous)] == [[], []]
    assert static.scenario == continuous.scenario
    joined = static.scenario.requests[-1]
    assert (joined.id, joined.prompt) == ("chat-1", "Say hi.")
    waits = [next(r.queue_steps for r in request_results(t) if r.request.id == "chat-1") for t in (static, continuous)]
    assert waits[0] == 40 - joined.arrival
    assert waits[1] == 0
    assert static.text("chat-1") == continuous.text("chat-1")
    assert static.text("chat-1")
    view = worker.view(job)
    assert view is not None
    assert view.num_added == 1
    assert "write less" in view.notice


def test_nothing_joins_what_is_no_running_chat() -> None:
    worker = Worker(time.monotonic, command=SILENT_CHILD)
    chat = worker.submit(scenario_of(2), CONFIGS, is_chat=True)
    for job in (chat, 99):
        with pytest.raises(ValueError, match="the run is over"):
            worker.add(job, "hello")
    seconds = Scenario("s", "S", scenario_of(2).requests, arrival_unit="seconds")
    with pytest.raises(ValueError, match="needs arrivals in steps"):
        worker.submit(seconds, CONFIGS, is_chat=True)
    worker.close()


CHATTY_CHILD = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["kind"] == "run":
        print(json.dumps({"kind": "headers", "job": message["job"], "lines": ["{}", "{}"]}), flush=True)
    elif message["kind"] == "add":
        print(json.dumps({"kind": "changed", "job": message["job"], "lines": [message["prompt"]] * 2}), flush=True)
"""


def test_a_chat_takes_so_many_messages_and_no_more() -> None:
    worker = Worker(time.monotonic, command=(sys.executable, "-c", CHATTY_CHILD))
    job = worker.submit(scenario_of(2), CONFIGS, is_chat=True)
    wait_for(lambda: state_of(worker, job) is JobState.RUNNING, 20)
    for bad in ("", "  ", "x" * (Limits().max_message_characters + 1)):
        with pytest.raises(ValueError, match="a message has 1 to"):
            worker.add(job, bad)
    for number in range(Limits().max_messages):
        view = worker.view(job)
        assert view is not None
        assert view.may_add
        worker.add(job, f"message {number}")
        wait_for(lambda number=number: view_of(worker, job).num_added == number + 1, 20)  # type: ignore[misc]
    assert not view_of(worker, job).may_add
    with pytest.raises(ValueError, match="takes no more"):
        worker.add(job, "one more")
    worker.close()


FORGETFUL_CHILD = CHATTY_CHILD.replace('"kind": "changed"', '"kind": "done"')


def test_a_message_that_came_too_late_is_counted() -> None:
    worker = Worker(time.monotonic, command=(sys.executable, "-c", FORGETFUL_CHILD))
    job = worker.submit(scenario_of(2), CONFIGS, is_chat=True)
    wait_for(lambda: state_of(worker, job) is JobState.RUNNING, 20)
    worker.add(job, "hello?")
    wait_for(lambda: state_of(worker, job) is JobState.DONE, 20)
    assert (view_of(worker, job).num_added, view_of(worker, job).num_lost) == (0, 1)
    worker.close()


def view_of(worker: Worker, job: int) -> JobView:
    view = worker.view(job)
    assert view is not None
    return view


SILENT_CHILD = (sys.executable, "-c", "import sys; sys.stdin.read()")  # takes jobs and never answers


def test_the_queue_is_bounded() -> None:
    worker = Worker(time.monotonic, command=SILENT_CHILD, limits=Limits(max_queued=16))
    for _ in range(16 + 1):
        worker.submit(scenario_of(2), CONFIGS)
    with pytest.raises(QueueFullError, match="16 runs wait already"):
        worker.submit(scenario_of(2), CONFIGS)
    worker.close()


def test_a_job_that_nobody_looks_at_is_dropped() -> None:
    now = [0.0]
    worker = Worker(lambda: now[0], command=SILENT_CHILD)
    running = worker.submit(scenario_of(2), CONFIGS)
    abandoned = worker.submit(scenario_of(2), CONFIGS)
    now[0] = 50.0
    assert state_of(worker, running) is JobState.LOADING
    now[0] = 70.0
    kept = worker.view(running)
    assert kept is not None
    assert kept.place == 0
    assert worker.view(abandoned) is None or state_of(worker, abandoned) is JobState.CANCELLED
    worker.close()


def test_a_child_that_cannot_start_fails_the_job_with_its_exit_code() -> None:
    worker = Worker(time.monotonic, command=(sys.executable, "-c", "raise SystemExit(7)"))
    job = worker.submit(scenario_of(2), CONFIGS)
    wait_for(lambda: state_of(worker, job).is_over, 20)
    view = worker.view(job)
    assert view is not None
    assert "exit code 7" in view.message
    worker.close()


class _Broken(io.StringIO):
    """A pipe at whose other end nobody listens any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_child_whose_parent_is_gone_ends_its_run_without_a_word() -> None:
    from batchviz.worker_child import Child  # loads torch

    child = Child(io.StringIO(), _Broken())
    assert not child._is_cancelled(1)
    child._say("step", 1, line="{}")
    assert child._is_cancelled(1)
