"""What can be debugged without a model: lengths alone, a recording, a trace that was saved.

Owns: how such sessions begin. Must not know: torch (debug_model.py begins sessions on the real model), terminals, pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batchviz.debug_run import DebugError, Started
from batchviz.runs import length_only, replay_run, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.trace import RunConfig, RunnerKind, StepSnapshot, Trace, TracedRequest, TraceStatus

RECORDED_ONLY = (
    "a recording has no tokens for a new request; `--runner model` answers it, `--runner scripted` counts it"
)
NOT_TO_BE_CHANGED = "a trace that was opened can be looked at; `fork` it to change what comes"


class ScriptedStart:
    """Lengths alone."""

    def __init__(self, scenario: Scenario, slot_capacity: int) -> None:
        self._scenario = scenario
        self._slot_capacity = slot_capacity

    def begin(self, config: RunConfig) -> Started:
        return Started(scripted_run(self._scenario, config))

    def again(self, config: RunConfig, most_slots: int) -> Started:
        return self.begin(config)

    def request(self, asked: ScenarioRequest) -> tuple[TracedRequest, frozenset[int]]:
        return length_only(asked, self._slot_capacity), frozenset()


class RecordedStart:
    """The tokens of a recording under any configuration."""

    def __init__(self, recordings: Sequence[Trace]) -> None:
        self._recordings = recordings

    def begin(self, config: RunConfig) -> Started:
        return Started(replay_run(self._recordings, config))

    def again(self, config: RunConfig, most_slots: int) -> Started:
        return self.begin(config)

    def request(self, asked: ScenarioRequest) -> tuple[TracedRequest, frozenset[int]]:
        raise DebugError(RECORDED_ONLY)


class TraceStart:
    """A saved trace, shown as it is. A complete one can be forked: its tokens are then scheduled anew."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def begin(self, config: RunConfig) -> Started:
        return Started(_History(self._trace))

    def again(self, config: RunConfig, most_slots: int) -> Started:
        if self._trace.status is not TraceStatus.COMPLETE:
            raise DebugError(
                f"a trace that is {self._trace.status} has not all the tokens; only a complete one can be forked"
            )
        if self._trace.forks:
            raise DebugError("a trace that was forked already cannot be forked again from its file")
        return RecordedStart((self._trace,)).begin(config)

    def request(self, asked: ScenarioRequest) -> tuple[TracedRequest, frozenset[int]]:
        raise DebugError(NOT_TO_BE_CHANGED if self._trace.origin.runner is not RunnerKind.SCRIPTED else RECORDED_ONLY)


class _History:
    """The steps of a trace, one by one, as if they were made now."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._num_shown = 0

    @property
    def has_work(self) -> bool:
        return self._num_shown < len(self._trace.steps)

    @property
    def step_number(self) -> int:
        return self._num_shown

    def step(self) -> StepSnapshot:
        self._num_shown += 1
        return self._trace.steps[self._num_shown - 1]

    def trace(self) -> Trace:
        status = TraceStatus.UNFINISHED if self.has_work else self._trace.status
        return replace(self._trace, steps=self._trace.steps[: self._num_shown], status=status)

    def add(self, traced: TracedRequest, stop_token_ids: frozenset[int]) -> None:
        raise DebugError(NOT_TO_BE_CHANGED)

    def abort(self, request_id: str) -> None:
        raise DebugError(NOT_TO_BE_CHANGED)

    def reschedule(self, config: RunConfig) -> None:
        raise DebugError(NOT_TO_BE_CHANGED)
