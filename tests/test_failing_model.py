"""A model that raises in mid-step, or whose numbers are none: one run ends, the process and everybody else go on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchviz.check import check_trace
from batchviz.debug_remote import RemoteStart
from batchviz.debug_run import DebugError
from batchviz.debugger import DebugSession
from batchviz.jobs import JobState
from batchviz.metrics import request_results
from batchviz.request import FinishReason
from batchviz.runner import RunnerOutput
from batchviz.runs import Run, RunFailedError, make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy, SchedulerOutput
from batchviz.trace import TraceStatus
from batchviz.trace_file import read_traces, write_traces
from batchviz.worker import Worker
from tests.test_worker import view_of, wait_for

CONFIGS = [make_config(Policy.STATIC, 2), make_config(Policy.CONTINUOUS, 2)]
WHY = "the run failed at step 3: RuntimeError: CUDA error: out of everything"

# The real child, whose forward pass raises, or gives no numbers, at the fourth token of certain requests.
FAULTY_CHILD = """
from batchviz import worker_child
from batchviz.model.runner import TorchRunner

plain = TorchRunner.forward

def faulty(self, step):
    logits = plain(self, step).clone()
    for row, work in enumerate(step.sampling):
        if work.output_index == 3 and work.request_id == "bad":
            raise RuntimeError("CUDA error:\\\\n  out of everything")
        if work.output_index == 3 and work.request_id == "nan":
            logits[row] = float("nan")
    return logits

TorchRunner.forward = faulty
worker_child.main()
""".replace("\\\\n", "\\n")


def scenario_of(*ids: str) -> Scenario:
    requests = tuple(ScenarioRequest(name, 8, prompt=f"Count to ten, {name}.", output_tokens=8) for name in ids)
    return Scenario("faulty", "Faulty", requests, num_slots=2)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(time.monotonic, command=(sys.executable, "-c", FAULTY_CHILD))
    yield worker
    worker.close()


@pytest.mark.model
@pytest.mark.parametrize("is_chat", [False, True], ids=["one-after-the-other", "together"])
def test_a_step_that_raises_ends_its_run_with_error_and_the_next_job_runs(
    worker: Worker, is_chat: bool, tmp_path: Path
) -> None:
    job = worker.submit(scenario_of("good", "bad"), CONFIGS, is_chat=is_chat)
    wait_for(lambda: view_of(worker, job).state.is_over)
    assert (view_of(worker, job).state, view_of(worker, job).message) == (JobState.FAILED, WHY)
    failed = worker.traces(job)[0]
    assert (failed.status, failed.message, len(failed.steps)) == (TraceStatus.ERROR, WHY, 3)
    assert check_trace(failed) == []
    write_traces(tmp_path / "failed.json", [failed])
    assert read_traces(tmp_path / "failed.json") == (failed,)
    pid = worker.child_pid
    following = worker.submit(scenario_of("good", "other"), CONFIGS)
    wait_for(lambda: view_of(worker, following).state.is_over)
    assert view_of(worker, following).state is JobState.DONE
    assert worker.child_pid == pid


@pytest.mark.model
def test_a_debugging_session_whose_step_raises_is_told_and_keeps_its_history(worker: Worker) -> None:
    session = DebugSession(RemoteStart(worker.ask, scenario_of("good", "bad")), CONFIGS[0])
    session.goto(2)
    for _ in range(2):  # asked again, it says the same
        with pytest.raises(DebugError) as caught:
            session.step()
        assert str(caught.value) == WHY
    assert session.goto(1).snapshot.step == 1
    assert session.num_steps == 3
    again = DebugSession(RemoteStart(worker.ask, scenario_of("good", "other")), CONFIGS[0])
    assert again.goto(4).snapshot.step == 4


@pytest.mark.model
def test_logits_that_are_no_numbers_end_one_answer_and_its_neighbour_s_stays_the_same(worker: Worker) -> None:
    job = worker.submit(scenario_of("good", "nan"), CONFIGS)
    alone = worker.submit(scenario_of("good"), CONFIGS)
    wait_for(lambda: view_of(worker, alone).state.is_over)
    assert (view_of(worker, job).state, view_of(worker, alone).state) == (JobState.DONE, JobState.DONE)
    for trace, other in zip(worker.traces(job), worker.traces(alone), strict=True):
        assert (trace.status, check_trace(trace)) == (TraceStatus.COMPLETE, [])
        reasons = {result.request.id: result.finish_reason for result in request_results(trace)}
        assert reasons == {"good": FinishReason.LENGTH, "nan": FinishReason.ERROR}
        assert trace.text("good") == other.text("good")
        assert trace.text("nan")


class Failing:
    """A runner that gives out at its third step."""

    def __init__(self) -> None:
        self.steps = 0

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput:
        self.steps += 1
        if self.steps == 3:
            raise MemoryError
        return RunnerOutput({work.slot: 7 for work in scheduled.scheduled if work.samples}, 0.0, 0.0, 1)


def test_a_run_that_failed_says_so_and_makes_no_more_steps() -> None:
    lengths = Scenario("s", "S", (ScenarioRequest("r", 5, prompt_tokens=2, output_tokens=5),))
    run: Run = scripted_run(lengths, CONFIGS[0])
    run.engine._runner = Failing()
    for go_on in (run.finish, run.step):
        with pytest.raises(RunFailedError) as caught:
            go_on()
        assert str(caught.value) == "the run failed at step 2: MemoryError"
    assert not run.has_work
    assert run.trace().status is TraceStatus.ERROR
    assert len(run.trace().steps) == 2
