"""How the page and a run end: a port that is taken, SIGTERM in mid-run; no child is left, and what was made is kept."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from batchviz.check import check_trace
from batchviz.serve import ENDS_WITHIN_S, end_server, why_not_listen
from batchviz.trace import TraceStatus
from batchviz.trace_file import read_traces

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
LONG = """
title: A long answer
num_slots: 1
requests:
  - {id: long, prompt: "Tell me a story.", max_tokens: 900, output_tokens: 900}
"""


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield int(server.getsockname()[1])


@pytest.mark.parametrize("command", ["app", "serve"])
def test_a_port_in_use_is_one_sentence_and_no_success(command: str, taken: int) -> None:
    arguments = [command, "--port", str(taken), "--host", "127.0.0.1", "--no-browser"]
    done = subprocess.run(
        [sys.executable, "-m", "batchviz", *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: port {taken} is in use, perhaps by another batchviz; end that, or choose another with --port {taken + 1}\n"
    )


def test_an_address_that_is_not_this_machine_s_is_said(taken: int) -> None:
    assert "cannot be listened on" in str(why_not_listen("192.0.2.1", taken))
    assert "is no address of this machine" in str(why_not_listen("no such host", taken))
    assert why_not_listen("127.0.0.1", 0) is None


def ended_within(process: subprocess.Popen[str], seconds: float) -> float:
    """How long it takes to end after SIGTERM."""
    started_s = time.monotonic()
    process.terminate()
    process.wait(seconds + 10)
    return time.monotonic() - started_s


def until_stepping(process: subprocess.Popen[str]) -> None:
    """Waits until the model is loaded and a run goes on."""
    assert process.stderr is not None
    for line in process.stderr:
        if "stepping" in line:
            return
    raise AssertionError("it ended before its first step")


# The command as it is, which says on stderr when its run has begun.
TOLD = """
import sys
from batchviz import cli, runs

plain = runs.Run.step
def step(self):
    if self.step_number == 5:
        print("stepping", file=sys.stderr, flush=True)
    return plain(self)

runs.Run.step = step
cli.main()
"""


@pytest.mark.model
@pytest.mark.parametrize("sign", [signal.SIGTERM])  # Ctrl-C: test_cli.py
def test_a_run_that_is_told_to_end_keeps_what_it_made(tmp_path: Path, sign: signal.Signals) -> None:
    (tmp_path / "long.yaml").write_text(LONG)
    arguments = ["run", str(tmp_path / "long.yaml"), "--runner", "model", "-o", str(tmp_path / "kept.json")]
    process = subprocess.Popen(
        [sys.executable, "-c", TOLD, *arguments],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until_stepping(process)
    started_s = time.monotonic()
    process.send_signal(sign)
    out, err = process.communicate(timeout=20)
    took_s = time.monotonic() - started_s
    assert process.returncode == 130
    assert out == f"{tmp_path / 'kept.json'}\n"
    assert "Traceback" not in err
    (trace,) = read_traces(tmp_path / "kept.json")
    assert (trace.status, trace.message) == (TraceStatus.CANCELLED, "interrupted")
    assert 5 <= len(trace.steps) < 900
    assert check_trace(trace) == []
    assert took_s < 2


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_the_page_s_server_ends_on_sigterm_and_leaves_nobody_behind() -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "batchviz", "app", "--port", str(port), "--host", "127.0.0.1", "--no-browser"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("batchviz is at ")
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    assert ended_within(process, 2) < ENDS_WITHIN_S + 1
    assert process.returncode == 0
    assert psutil.wait_procs(children, timeout=2)[1] == []
    process.stdout.close()
    assert why_not_listen("127.0.0.1", port) is None


STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_server_that_will_not_end_is_ended_with_all_that_it_started() -> None:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        child = psutil.Process(int(server.stdout.readline()))
        started_s = time.monotonic()
        end_server(server)
        assert time.monotonic() - started_s < ENDS_WITHIN_S + 1
    assert server.returncode == -signal.SIGKILL
    assert_gone(child, 5)


SERVER_WITH_CHILD = """
import time
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.worker import Worker

worker = Worker(time.monotonic)
requests = (ScenarioRequest("r", 900, prompt="Tell me a story.", output_tokens=900),)
job = worker.submit(Scenario("s", "S", requests), [make_config(Policy.STATIC, 1)])
print(worker.child_pid, flush=True)
while True:
    if worker.traces(job) and worker.traces(job)[0].steps:
        print("stepping", flush=True)
    time.sleep(0.1)
"""


@pytest.mark.model
@pytest.mark.parametrize("when", ["loading", "stepping"])
def test_the_model_s_process_ends_with_its_server_whatever_it_is_at(when: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER_WITH_CHILD], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        child = psutil.Process(int(server.stdout.readline()))
        if when == "stepping":
            assert server.stdout.readline() == "stepping\n"
        else:
            time.sleep(1.0)
        server.kill()
    assert_gone(child, 2 if when == "stepping" else 60)  # it cannot hear of it before torch is imported


def assert_gone(process: psutil.Process, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(process)


def is_alive(process: psutil.Process) -> bool:
    """Not one that has ended and that nobody has taken note of."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
