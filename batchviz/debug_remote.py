"""Debugging sessions on the real model, from a process that must not load it: every step is asked of the one that has it.

Owns: RemoteStart. Must not know: torch, processes (it is given how to ask), pages. debug_child.py is the other side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from batchviz.debug_run import Candidate, DebugError, Seen, Started
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scenario_file import dump_scenario
from batchviz.trace import RunConfig, StepSnapshot, Trace, TracedRequest, TraceStatus
from batchviz.trace_file import joined_trace, request_from_line, request_line, step_from_line

Answer = dict[str, Any]
Ask = Callable[[dict[str, Any]], Answer]
"""Asks the model's process and waits for its answer. Raises RuntimeError or TimeoutError with one sentence."""

NOBODY_BEGAN = "nothing has begun"


class RemoteStart:
    """The scenario, answered by the model in its process."""

    def __init__(self, ask: Ask, scenario: Scenario) -> None:
        self._ask = ask
        self._scenario_text = dump_scenario(scenario)
        self._latest: RemoteRun | None = None

    def begin(self, config: RunConfig) -> Started:
        return self.again(config, config.num_slots)

    def again(self, config: RunConfig, most_slots: int) -> Started:
        question = {
            "what": "begin",
            "scenario": self._scenario_text,
            "config": dataclasses.asdict(config),
            "most_slots": most_slots,
        }
        run = self._latest = RemoteRun(self._ask, _answered(self._ask, question))
        return Started(run, run.seen, run.end)

    def request(self, asked: ScenarioRequest) -> tuple[TracedRequest, frozenset[int]]:
        if self._latest is None:
            raise DebugError(NOBODY_BEGAN)
        question = {"what": "trace", "run": self._latest.number, "request": dataclasses.asdict(asked)}
        answer = _answered(self._ask, question)
        return request_from_line(answer["request"]), frozenset(answer["stop_token_ids"])


class RemoteRun:
    """A Steppable whose engine is elsewhere. What it has said so far stays here, and with it the trace."""

    def __init__(self, ask: Ask, begun: Answer) -> None:
        self._ask = ask
        self.number: int = begun["run"]
        self.seen: list[Seen] = []
        self._steps: list[StepSnapshot] = []
        self._has_work = False
        self._take(begun)

    @property
    def has_work(self) -> bool:
        return self._has_work

    @property
    def step_number(self) -> int:
        return len(self._steps)

    def step(self) -> StepSnapshot:
        answer = self._asked("step")
        self._steps.append(step_from_line(answer["line"]))
        self.seen.append(_seen(answer["seen"]))
        self._has_work = bool(answer["has_work"])
        return self._steps[-1]

    def trace(self) -> Trace:
        status = TraceStatus.UNFINISHED if self._has_work else TraceStatus.COMPLETE
        return replace(self._head, steps=tuple(self._steps), status=status)

    def add(self, traced: TracedRequest, stop_token_ids: frozenset[int]) -> None:
        self._take(self._asked("add", request=request_line(traced), stop_token_ids=sorted(stop_token_ids)))

    def abort(self, request_id: str) -> None:
        self._take(self._asked("abort", request_id=request_id))

    def reschedule(self, config: RunConfig) -> None:
        self._take(self._asked("reschedule", config=dataclasses.asdict(config)))

    def end(self) -> None:
        """Its engine is needed no more; what was seen stays."""
        self._asked("end")

    def _asked(self, what: str, **rest: Any) -> Answer:
        return _answered(self._ask, {"what": what, "run": self.number, **rest})

    def _take(self, answer: Answer) -> None:
        self._head = joined_trace(answer["header"], (), TraceStatus.UNFINISHED)
        self._has_work = bool(answer["has_work"])


def _answered(ask: Ask, question: dict[str, Any]) -> Answer:
    """Raises DebugError where it was refused, or nobody answers."""
    try:
        answer = ask({"kind": "debug", **question})
    except TimeoutError:
        raise DebugError("the model's process does not answer; begin another session") from None
    except RuntimeError as error:
        raise DebugError(f"{error}; begin another session") from None
    if "refused" in answer:
        raise DebugError(str(answer["refused"]))
    return answer


def _seen(plain: Answer) -> Seen:
    likeliest = {slot: tuple(Candidate(*one) for one in likely) for slot, likely in plain["likeliest"]}
    return Seen(likeliest, plain["linear_s"], plain["attention_s"])
