"""What the terminal's commands share: the choice of a runner, runs with progress, and one place where errors end.

Owns: RunOptions, Terminal, `make_traces`. Must not know: commands, output formats.
"""

from __future__ import annotations

import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import FrameType, TracebackType
from typing import NoReturn, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from batchviz.check_any import AnyPolicyCheck
from batchviz.own_policy import OwnPolicy, OwnPolicyError, describe
from batchviz.prefill import PrefillMode
from batchviz.recordings import has_recording, load_recording
from batchviz.request import SamplingParams
from batchviz.runs import Run, RunFailedError, replay_run, scenario_config, scripted_run
from batchviz.scenario import Scenario, ScenarioError, shown_text
from batchviz.scheduler import Policy, Scheduler
from batchviz.trace import RunConfig, StepSnapshot, Trace, TraceStatus


class RunnerChoice(StrEnum):
    """`--runner`."""

    SCRIPTED = "scripted"
    RECORDED = "recorded"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a run's configuration is made from. None: as the scenario says."""

    num_slots: int | None
    slot_capacity: int
    prefill: PrefillMode | None
    max_batched_tokens: int | None
    kv_budget_tokens: int | None
    group_timeout: float | None

    def config(self, scenario: Scenario, policy: Policy) -> RunConfig:
        """Raises ValueError with one sentence."""
        return scenario_config(
            scenario,
            policy,
            self.num_slots,
            self.slot_capacity,
            prefill=self.prefill,
            max_batched_tokens=self.max_batched_tokens,
            kv_budget_tokens=self.kv_budget_tokens,
            group_timeout=self.group_timeout,
        )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the options of `compare` and `run` say."""

    runner: RunnerChoice | None
    knobs: Knobs
    sampling: SamplingParams
    model: str | None
    device: str | None
    dtype: str | None


class Terminal:
    """A context in which bad input ends with one sentence and exit code 2, and Ctrl-C or SIGTERM with 130.

    Progress is shown on stderr, and only if that is a terminal.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars: Progress | None = None
        self._task: TaskID | None = None
        self._sigterm: signal.Handlers | Callable[[int, FrameType | None], object] | int | None = None

    @property
    def width(self) -> int:
        """Columns to draw in: the terminal's, 40 to 160; 100 where stdout is none."""
        return max(40, min(shutil.get_terminal_size((100, 24)).columns, 160)) if sys.stdout.isatty() else 100

    def progress(self, message: str, fraction: float | None) -> None:
        """Shows what is going on and how far it is (0 to 1, or None if nobody knows)."""
        if self._bars is None:
            return
        if self._task is None:
            self._task = self._bars.add_task(message, total=None)
        self._bars.update(
            self._task, description=message, total=None if fraction is None else 1.0, completed=fraction or 0.0
        )

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._sigterm = signal.signal(signal.SIGTERM, _interrupt)
        if self._console.is_terminal:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._bars = Progress(*columns, console=self._console, transient=True)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._sigterm is not None:
            signal.signal(signal.SIGTERM, self._sigterm)
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
        if isinstance(error, KeyboardInterrupt):
            self.say("interrupted")
            raise SystemExit(130) from None
        ours = isinstance(error, RuntimeError) and type(error).__module__.startswith("batchviz.")
        if ours or isinstance(error, ValueError | OSError):
            assert error is not None
            self.say(f"error: {_sentence(error)}")
            raise SystemExit(2) from None

    def say(self, text: str) -> None:
        """A line on stderr."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def make_traces(
    scenario: Scenario, policies: Sequence[Policy | OwnPolicy], options: RunOptions, terminal: Terminal
) -> tuple[Trace, ...]:
    """Runs every policy in turn. After Ctrl-C, SIGTERM or a step that failed: the finished runs, and that one so far.

    One of one's own is held to the rules at every step; the first that is broken ends it, with OwnPolicyError.
    """
    if options.knobs.group_timeout and Policy.STATIC not in policies:
        named = ", ".join(policy.name if isinstance(policy, OwnPolicy) else policy for policy in policies)
        raise ValueError(f"--group-timeout belongs to the policy static; the policy here is {named}")
    configs = [(_config(scenario, policy, options.knobs), policy) for policy in policies]
    traces: list[Trace] = []
    start = _starter(scenario, [config for config, _ in configs], options, terminal)
    for config, policy in configs:
        own = policy if isinstance(policy, OwnPolicy) else None
        run = start(config, own.make(config) if own is not None else None)
        steps = run_steps(run) if own is None else checked_steps(run, own, config)
        try:
            for snapshot in steps:
                if snapshot.step % 16 == 0:
                    terminal.progress(f"{config.name}: step {snapshot.step}", None)
        except KeyboardInterrupt:
            traces.append(run.trace(TraceStatus.CANCELLED, "interrupted"))
            break
        except RunFailedError as error:
            traces.append(run.trace())
            terminal.say(f"error: {error}")
            break
        traces.append(run.trace())
    return tuple(traces)


def run_steps(run: Run) -> Iterator[StepSnapshot]:
    """Every step, as it is made."""
    while run.has_work:
        yield run.step()


def checked_steps(run: Run, own: OwnPolicy, config: RunConfig) -> Iterator[StepSnapshot]:
    """The same, held to what no policy may break. Raises OwnPolicyError with the step and the rule."""
    check = AnyPolicyCheck(run.trace().scenario.requests, config)
    while run.has_work:
        number = run.step_number
        try:
            snapshot = run.step()
        except RunFailedError as error:  # their code
            raise OwnPolicyError(f"{own.name} failed at step {number}: {describe(error.__cause__ or error)}") from error
        if (problem := check.take(snapshot)) is not None:
            raise OwnPolicyError(f"{own.name} breaks a rule at step {number}: {problem}")
        yield snapshot


def _config(scenario: Scenario, policy: Policy | OwnPolicy, knobs: Knobs) -> RunConfig:
    if isinstance(policy, OwnPolicy):
        return replace(knobs.config(scenario, policy.base), policy_class=policy.name)
    return knobs.config(scenario, policy)


def _starter(
    scenario: Scenario, configs: Sequence[RunConfig], options: RunOptions, terminal: Terminal
) -> Callable[[RunConfig, Scheduler | None], Run]:
    """How to begin a run of this scenario with the chosen runner."""
    runner = choose_runner(scenario, options.runner)
    if runner is RunnerChoice.SCRIPTED:
        return lambda config, scheduler: scripted_run(scenario, config, scheduler)
    if runner is RunnerChoice.RECORDED:
        recordings = recording_of(scenario)
        return lambda config, scheduler: replay_run(recordings, config, scheduler)

    from batchviz.live import LiveModel  # loads torch

    live = LiveModel.load(
        time.perf_counter,
        name=options.model,
        device=options.device,
        dtype=options.dtype,
        progress=terminal.progress,
    )
    record = live.prepare(scenario, options.knobs.slot_capacity, options.sampling)
    for config in configs:  # before the first of them takes its time
        live.check_memory(record, [config])
    return lambda config, scheduler: live.start(record, config, scheduler=scheduler)


def recording_of(scenario: Scenario) -> tuple[Trace, ...]:
    """The shipped recording of a scenario as it is now. Raises ScenarioError if there is none."""
    if not has_recording(scenario.name):
        raise ScenarioError(f"there is no recording of {shown_text(scenario.name)}; use --runner model or scripted")
    recordings = load_recording(scenario.name)
    recorded = [(request.id, request.prompt, request.max_tokens) for request in recordings[0].scenario.requests]
    if recorded != [(request.id, request.prompt, request.max_tokens) for request in scenario.requests]:
        raise ScenarioError(
            f"the recording of {shown_text(scenario.name)} has other requests than the scenario; use --runner model"
        )
    return recordings


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}" if error.filename else error.strerror.lower()
    return " ".join(str(error).split())


def choose_runner(scenario: Scenario, asked: RunnerChoice | None) -> RunnerChoice:
    """What was asked, else the quickest that is real: lengths alone, a shipped recording, the model."""
    if asked is not None:
        return asked
    if scenario.has_exact_lengths and not scenario.has_words:
        return RunnerChoice.SCRIPTED
    return RunnerChoice.RECORDED if has_recording(scenario.name) else RunnerChoice.MODEL
