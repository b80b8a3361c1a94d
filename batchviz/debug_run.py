"""What a debugging session runs on: a run that can be stepped and changed, and who puts one together.

Owns: the protocols Steppable and Start, Candidate, Seen, DebugError. Must not know: sessions, engines, terminals, torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from batchviz.scenario import ScenarioRequest
from batchviz.trace import RunConfig, StepSnapshot, Trace, TracedRequest


class DebugError(ValueError):
    """Something that cannot be done now. The message is one sentence that says why, and what can."""


class Candidate(NamedTuple):
    """A token that might have been sampled."""

    token_id: int
    text: str
    probability: float


Likeliest = Mapping[int, tuple[Candidate, ...]]
"""Of one step: slot -> its likeliest next tokens, the likeliest first."""


class Seen(NamedTuple):
    """What a model's step shows beside its snapshot. Seconds are None where they cannot be told apart."""

    likeliest: Likeliest
    linear_s: float | None = None
    attention_s: float | None = None


class Steppable(Protocol):
    """What a session needs of a run; `runs.Run` is one."""

    @property
    def has_work(self) -> bool: ...
    @property
    def step_number(self) -> int: ...
    def step(self) -> StepSnapshot: ...
    def trace(self) -> Trace: ...
    def add(self, traced: TracedRequest, stop_token_ids: frozenset[int]) -> None: ...
    def abort(self, request_id: str) -> None: ...
    def reschedule(self, config: RunConfig) -> None: ...


class Started(NamedTuple):
    """A run at its beginning. `seen` grows with its steps, None where no model runs; `end` lets go of what it holds."""

    run: Steppable
    seen: Sequence[Seen] | None = None
    end: Callable[[], None] = lambda: None


class Start(Protocol):
    """Puts runs of one scenario together."""

    def begin(self, config: RunConfig) -> Started:
        """The scenario from its beginning."""
        ...

    def again(self, config: RunConfig, most_slots: int) -> Started:
        """The same once more, to be changed later on; up to `most_slots` slots will be asked for. Raises DebugError."""
        ...

    def request(self, asked: ScenarioRequest) -> tuple[TracedRequest, frozenset[int]]:
        """A request for this run, and its end tokens. Raises ValueError where this run cannot answer new ones."""
        ...
