"""What computes a step: the ModelRunner protocol and the two runners that need no model.

Owns: RunnerOutput, Detokenizer, ScriptedRunner, RecordedRunner. Must not know: queues, policies, torch.
A runner sees slots and token ids, nothing else; so any runner works under any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

from batchviz.scheduler import SchedulerOutput

NO_ERRORS: Mapping[int, str] = MappingProxyType({})
SCRIPTED_TOKEN_ID = 0  # a scripted run has lengths and no words; every token it "samples" is this one


class RunnerOutput(NamedTuple):
    """What came out of one step. `token_ids` and `errors` are keyed by slot; times are in seconds."""

    token_ids: Mapping[int, int]
    forward_s: float
    sample_s: float
    num_rows: int  # rows of the packed batch that belong to a token, = the sum of fed tokens
    num_dummy_rows: int = 0  # rows added so that the arithmetic does not depend on the batch (see model/runner.py)
    errors: Mapping[int, str] = NO_ERRORS


class ModelRunner(Protocol):
    """Computes one step. It never asks who waits or why."""

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput: ...


class Detokenizer(Protocol):
    """Turns sampled tokens into the text a user would see.

    `push` returns the text that becomes visible with this token: possibly nothing (an end token, half a character),
    None where no model ran. `final` is True for a sequence's last token: whatever was held back comes out.
    """

    def push(self, request_id: str, token_id: int, final: bool) -> str | None: ...


class NoText:
    """The detokenizer of runs without a model."""

    def push(self, request_id: str, token_id: int, final: bool) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class StepCost:
    """A modelled duration of a step, in seconds: what it costs to run at all, and each row of the packed batch.

    Linear on purpose. A recorded run is fitted by `fit`; a scripted one takes the defaults, measured once with
    SmolLM2-135M in bfloat16 on two cores of an AMD EPYC (about 20 ms a step, 1 ms a row).
    """

    base_s: float = 0.020
    row_s: float = 0.001

    def __call__(self, num_rows: int) -> float:
        return 0.0 if num_rows == 0 else self.base_s + self.row_s * num_rows

    @classmethod
    def fit(cls, num_rows: Sequence[int], durations_s: Sequence[float]) -> StepCost:
        """Least squares over measured steps, without the idle ones; neither part is ever negative."""
        pairs = [(rows, seconds) for rows, seconds in zip(num_rows, durations_s, strict=True) if rows > 0]
        if not pairs:
            return cls()
        mean_rows = sum(rows for rows, _ in pairs) / len(pairs)
        mean_s = sum(seconds for _, seconds in pairs) / len(pairs)
        spread = sum((rows - mean_rows) ** 2 for rows, _ in pairs)
        slope = sum((rows - mean_rows) * (seconds - mean_s) for rows, seconds in pairs) / spread if spread else 0.0
        row_s = min(max(slope, 0.0), mean_s / mean_rows)
        return cls(base_s=max(mean_s - row_s * mean_rows, 0.0), row_s=row_s)


class ScriptedRunner:
    """No model: every sequence gets as many tokens as its request says. Seconds are modelled by `cost`."""

    def __init__(self, cost: Callable[[int], float] | None = None) -> None:
        self._cost = cost or StepCost()

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput:
        token_ids = {work.slot: SCRIPTED_TOKEN_ID for work in scheduled.scheduled if work.samples}
        num_rows = sum([len(work.token_ids) for work in scheduled.scheduled])
        return RunnerOutput(token_ids, self._cost(num_rows), 0.0, num_rows)


class RecordedTokens(NamedTuple):
    """One request's tokens as a real run sampled them, and the text each made visible."""

    token_ids: tuple[int, ...]
    pieces: tuple[str | None, ...]


class RecordedRunner:
    """Replays recorded tokens under any policy and slot count: tokens recorded, schedule counted, seconds modelled.

    It may, because a request's tokens depend on nobody beside it (the recording says whether that held). It is its
    own detokenizer. A request that the recording does not have ends with `error`.
    """

    def __init__(self, recorded: Mapping[str, RecordedTokens], cost: Callable[[int], float]) -> None:
        self._recorded = recorded
        self._cost = cost
        self._num_pushed: dict[str, int] = {}

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput:
        token_ids: dict[int, int] = {}
        errors: dict[int, str] = {}
        for work in scheduled.scheduled:
            if not work.samples:
                continue
            recorded = self._recorded.get(work.request_id)
            if recorded is None or work.output_index >= len(recorded.token_ids):
                errors[work.slot] = f"the recording has no token {work.output_index} of request {work.request_id!r}"
            else:
                token_ids[work.slot] = recorded.token_ids[work.output_index]
        num_rows = sum([len(work.token_ids) for work in scheduled.scheduled])
        return RunnerOutput(token_ids, self._cost(num_rows), 0.0, num_rows, errors=errors)

    def push(self, request_id: str, token_id: int, final: bool) -> str | None:
        index = self._num_pushed.get(request_id, 0)
        self._num_pushed[request_id] = index + 1
        return self._recorded[request_id].pieces[index]
