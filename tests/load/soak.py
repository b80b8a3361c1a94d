"""`make soak`: the same things again and again; memory stays flat, and no thread, file handle or temporary file is left.

Owns: three phases: scripted runs in this process, short live runs on one child, events on the page of a real server. Must
not know: the protocol. Each phase ends with its time, and says how far it came; exit code 1 if something grew or was left.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import psutil

from batchviz.jobs import JobState
from batchviz.machine import describe_machine
from batchviz.playback import playback
from batchviz.presets import list_scripted_presets
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.worker import Worker
from tests.e2e.app_server import app_server
from tests.load.viewer import Viewer

NUM_SCRIPTED, NUM_LIVE, NUM_EVENTS = 2_000, 50, 500
SCRIPTED_S, LIVE_S, ALL_S = 60.0, 100.0, 285.0
FLAT_WITHIN = 0.05
SLOTS = (2, 3, 5, 6, 8)


@dataclass(frozen=True)
class Sample:
    """A process at one moment."""

    memory: int
    num_threads: int
    num_files: int


def sample(process: psutil.Process) -> Sample:
    return Sample(process.memory_info().rss, process.num_threads(), process.num_fds())


class Watch:
    """Looks at one process after every round, and says what became of it after the first tenth."""

    def __init__(self, what: str, process: psutil.Process, planned: int) -> None:
        self._what, self._process, self._planned = what, process, planned
        self._first: Sample | None = None
        self._last = sample(process)
        self._num_rounds = 0

    def look(self) -> None:
        self._num_rounds += 1
        self._last = sample(self._process)
        if self._num_rounds == self._planned // 10:
            self._first = self._last

    def told(self) -> tuple[str, list[str]]:
        """The figures, and one sentence for everything that grew."""
        if self._first is None:
            return f"{self._what}: {self._num_rounds} of {self._planned}", [
                f"{self._what}: not a tenth was done in time"
            ]
        first, last = self._first, self._last
        growth = last.memory / first.memory - 1
        figures = (
            f"{self._what}: {self._num_rounds} of {self._planned}; memory {first.memory / 1e6:.0f} → "
            f"{last.memory / 1e6:.0f} MB ({growth:+.1%}), threads {first.num_threads} → {last.num_threads}, "
            f"files {first.num_files} → {last.num_files}"
        )
        grew = [
            f"{self._what}: {name} grew"
            for name, is_bad in (
                ("memory", growth > FLAT_WITHIN),
                ("the number of threads", last.num_threads > first.num_threads),
                ("the number of open files", last.num_files > first.num_files),
            )
            if is_bad
        ]
        return figures, grew


def repeat(planned: int, seconds: float, deed: Callable[[int], None], *watches: Watch) -> None:
    """Does it so often, or until the time is over."""
    end = time.monotonic() + seconds
    for number in range(planned):
        if time.monotonic() > end:
            return
        deed(number)
        for watch in watches:
            watch.look()


def scripted() -> list[Watch]:
    """A run without a model, and its payload."""
    scenario = list_scripted_presets()[0]
    configs = [make_config(policy, 4) for policy in (Policy.STATIC, Policy.CONTINUOUS)]
    watch = Watch("scripted runs", psutil.Process(), NUM_SCRIPTED)
    repeat(NUM_SCRIPTED, SCRIPTED_S, lambda n: void(playback([scripted_run(scenario, configs[n % 2]).finish()])), watch)
    return [watch]


def live() -> list[Watch]:
    """A few tokens on the real model, one child for all."""
    worker = Worker(time.monotonic)
    request = ScenarioRequest(id="r", prompt="Count to five.", max_tokens=4)
    scenario = Scenario("soak", "Soak", (request,))
    configs = [make_config(Policy.CONTINUOUS, 2)]

    def one_run(_: int) -> None:
        job = worker.submit(scenario, configs, viewer="soak")
        while (view := worker.view(job, "soak")) is not None and not view.state.is_over:
            time.sleep(0.01)
        assert view is not None
        assert view.state is JobState.DONE, view.message

    one_run(0)  # the model is loaded
    assert worker.child_pid is not None
    child = psutil.Process(worker.child_pid)
    watches = [Watch("live runs, this process", psutil.Process(), NUM_LIVE), Watch("live runs, child", child, NUM_LIVE)]
    repeat(NUM_LIVE, LIVE_S, one_run, *watches)
    worker.close()
    return watches


async def events(end: float) -> list[Watch]:
    """A knob turned, or a link opened, on one page of a real server, until then by the clock."""
    with app_server() as server:
        watch = Watch("page events, server", psutil.Process(server.process_id), NUM_EVENTS)
        async with Viewer(server.url) as viewer:
            await viewer.open()
            await viewer.say_painted()
            for number, slots in zip(range(NUM_EVENTS), cycle(SLOTS), strict=False):
                if time.monotonic() > end:
                    break
                await (viewer.open_link("preset=few-users") if number % 10 == 9 else viewer.choose_slots(slots))
                if number % 10 == 9:
                    await viewer.open_link("preset=four-slots")
                watch.look()
        return [watch]


def is_torchs(name: str) -> bool:
    """Torch makes one empty folder for each user, the same one every time."""
    return name.startswith("torchinductor_")


def void(_: object) -> None:
    """Lets go of it."""


def main() -> int:
    print(f"{describe_machine()}, {datetime.now(UTC).date()}, load average {os.getloadavg()[0]:.1f}", flush=True)
    problems: list[str] = []
    end = time.monotonic() + ALL_S
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        before = sample(psutil.Process())
        for phase in (scripted, live, lambda: asyncio.run(events(end))):
            for watch in phase():
                figures, grew = watch.told()
                print(figures, flush=True)
                problems += grew
        gc.collect()
        after = sample(psutil.Process())
        left = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if not is_torchs(path.name))
    print(
        f"in the end: threads {before.num_threads} → {after.num_threads}, files {before.num_files} → {after.num_files}"
    )
    print(f"temporary files left: {', '.join(left) or 'none'}")
    if after.num_threads > before.num_threads or after.num_files > before.num_files:
        problems.append("threads or open files were left in the end")
    problems += ["temporary files were left"] if left else []
    print("\n".join(f"BROKEN: {one}" for one in problems) or "nothing grew and nothing was left")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
