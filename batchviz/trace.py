"""What a run left behind, from small to large: phase, slot, step, trace. The product: everything else reads this.

Owns: the snapshot and trace types, and questions computed from them. Must not know: engines, files, colours, models.
Nothing in here is a tensor, a label or a reference to a living object; a second viewer can be written from this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from batchviz.prefill import PrefillMode
from batchviz.request import GREEDY, SamplingParams
from batchviz.scheduler import Admission, Finish, Policy, WaitReason

STRICT: Mapping[str, Any] = MappingProxyType({"extra": "forbid", "strict": True, "allow_inf_nan": False})


class SlotPhase(StrEnum):
    """What one slot did in one step. Every slot-step is exactly one of these five."""

    EMPTY = "empty"  # nobody sits here
    PREFILL = "prefill"  # the prompt was read
    DECODE = "decode"  # one more token
    HELD = "held"  # finished, but the slot is not released (static batching)
    STALLED = "stalled"  # seated, but given no token in this step


class ArrivalUnit(StrEnum):
    """What a request's `arrival` counts."""

    STEPS = "steps"  # whole numbers; exactly reproducible
    SECONDS = "seconds"  # since the start of the run, by the sum of its steps' durations


class RunnerKind(StrEnum):
    """Where the tokens come from: a real model now, a real model earlier, or nowhere (lengths alone)."""

    MODEL = "model"
    RECORDED = "recorded"
    SCRIPTED = "scripted"


class Seconds(StrEnum):
    """Whether a trace's seconds were taken from a clock or computed from a cost per step."""

    MEASURED = "measured"
    MODELLED = "modelled"


class TraceStatus(StrEnum):
    """How a run ended."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    ERROR = "error"
    UNFINISHED = "unfinished"


class SlotSnapshot(NamedTuple):
    """One square on the screen: one slot during one step."""

    phase: SlotPhase
    request_id: str | None = None  # None only if EMPTY
    position: int = 0  # of the first token fed, in the sequence; 0 if none was fed
    num_tokens: int = 0  # fed in this step: the prompt's length, 1 when decoding, 0 when held, stalled or empty
    token_id: int | None = None  # sampled in this step; None if none was
    text: str | None = (
        None  # what became visible with it; "" for an end token or half a character; None without a model
    )


EMPTY_SLOT = SlotSnapshot(SlotPhase.EMPTY)


class Rejection(NamedTuple):
    """A request that no slot could ever hold, and the arithmetic that says so."""

    request_id: str
    why: str


class StepSnapshot(NamedTuple):
    """One iteration of the engine. Times are in seconds; `start_s` is the sum of the durations before it."""

    step: int  # counted from 0
    start_s: float
    schedule_s: float  # deciding, before and after the forward pass
    forward_s: float
    sample_s: float
    num_rows: int  # rows of the packed batch: one for every token fed
    num_dummy_rows: int  # rows that belong to nobody (see model/runner.py)
    slots: tuple[SlotSnapshot, ...]
    arrived: tuple[str, ...] = ()  # joined the queue before this step's admissions
    rejected: tuple[Rejection, ...] = ()
    aborted: tuple[str, ...] = ()  # their users left before this step's admissions
    admitted: tuple[Admission, ...] = ()
    finished: tuple[Finish, ...] = ()  # their last token came out of this step
    delivered: tuple[str, ...] = ()  # their users have the answer at the end of this step
    num_waiting: int = 0  # after the admissions of this step
    head: str | None = None  # the first of the queue
    head_reason: WaitReason | None = None  # why it was not admitted; those behind it wait `behind_head`

    @property
    def duration_s(self) -> float:
        return self.schedule_s + self.forward_s + self.sample_s

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s

    def __str__(self) -> str:
        """One line of the text picture: `for snapshot in engine.run(): print(snapshot)` draws it, a step a line."""
        mark = {SlotPhase.HELD: "░", SlotPhase.STALLED: "-", SlotPhase.PREFILL: "▸"}
        cells = (f"{mark.get(slot.phase, '')}{slot.request_id or '·'}"[:9] for slot in self.slots)
        ended = ", ".join(finish.request_id for finish in self.finished)
        line = f"step {self.step:>4} │ " + " ".join(f"{cell:<9}" for cell in cells) + f"│ {self.num_waiting} wait"
        return line + (f", {ended} finished" if ended else "")


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """A request as the trace keeps it: the frozen Request, with its words. `prompt` is None where only lengths exist."""

    id: str
    num_prompt_tokens: int
    max_tokens: int
    arrival: float = 0
    output_tokens: int | None = None
    prompt: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    sampling: SamplingParams = GREEDY

    __pydantic_config__ = STRICT

    @property
    def max_output_tokens(self) -> int:
        return self.max_tokens if self.output_tokens is None else self.output_tokens

    @property
    def num_reserved_tokens(self) -> int:
        return self.num_prompt_tokens + self.max_output_tokens


@dataclass(frozen=True, slots=True)
class ScenarioRecord:
    """The scenario as plain data: what was asked of every policy alike."""

    name: str
    title: str
    requests: tuple[TracedRequest, ...]
    look_for: str = ""  # one sentence: what to look for
    arrival_unit: ArrivalUnit = ArrivalUnit.STEPS

    __pydantic_config__ = STRICT


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How the scenario was run."""

    policy: Policy
    num_slots: int
    slot_capacity: int = 1024
    prefill: PrefillMode = PrefillMode.MIXED
    max_batched_tokens: int | None = None  # chunked only: tokens fed in one step, at most
    kv_budget_tokens: int | None = None  # KV positions that all seated sequences may reserve together
    group_timeout: float = 0  # static only: how long a group that is not full waits, in the arrival unit
    policy_class: str = ""  # of one's own, made from `policy`, as it was named: to be shown, never to be loaded

    __pydantic_config__ = STRICT

    @property
    def name(self) -> str:
        """What the policy is called."""
        return self.policy_class.rpartition(":")[2] or str(self.policy)


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """Which weights produced the tokens. `sha256` is of the file the weights were read from, where there is one."""

    name: str
    dtype: str
    device: str
    sha256: str | None = None
    stop_token_ids: tuple[int, ...] = ()  # sampling one of them ends an answer
    note: str = ""
    exact: bool | None = None  # did the self-check find that a batch does not change a request's tokens?
    exact_note: str = ""

    __pydantic_config__ = STRICT


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a trace comes from. For a replay, `date`, `machine` and `model` are the recording's."""

    runner: RunnerKind
    seconds: Seconds
    date: str = ""  # ISO 8601, UTC; empty where nothing was measured
    machine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    model: ModelRecord | None = None
    cost: tuple[float, float] | None = None  # modelled seconds: of a step, and of each packed row

    __pydantic_config__ = STRICT


class Event(NamedTuple):
    """Something worth stopping at: `kind` is arrived, rejected, aborted, admitted, finished or delivered."""

    step: int
    kind: str
    request_id: str


class Fork(NamedTuple):
    """Somebody changed the configuration in mid-run: the steps before `step` were made under `before`."""

    step: int
    before: RunConfig


@dataclass(frozen=True, slots=True)
class Trace:
    """One policy's run of one scenario: everything that was decided and everything that came out."""

    scenario: ScenarioRecord
    config: RunConfig
    origin: Origin
    steps: tuple[StepSnapshot, ...]
    status: TraceStatus = TraceStatus.COMPLETE
    message: str = ""  # why, if the status is not `complete`
    forks: tuple[Fork, ...] = ()  # in the order of their steps; `config` is the last configuration

    __pydantic_config__ = STRICT

    def config_at(self, step: int) -> RunConfig:
        """The configuration that this step was made under."""
        return next((fork.before for fork in self.forks if step < fork.step), self.config)

    @property
    def num_slots(self) -> int:
        """The most slots that there were in any step."""
        return max([self.config.num_slots, *(fork.before.num_slots for fork in self.forks)])

    @property
    def duration_s(self) -> float:
        return self.steps[-1].end_s if self.steps else 0.0

    def at(self, seconds: float) -> int:
        """The step that was going on at this moment (the last one at and after the end; 0 in an empty trace)."""
        low, high = 0, max(len(self.steps) - 1, 0)
        while low < high:
            middle = (low + high + 1) // 2
            if self.steps[middle].start_s <= seconds:
                low = middle
            else:
                high = middle - 1
        return low

    def tokens(self, request_id: str) -> Iterator[tuple[int, SlotSnapshot]]:
        """Every (step, slot snapshot) that gave this request a token, in order."""
        for snapshot in self.steps:
            for slot in snapshot.slots:
                if slot.request_id == request_id and slot.token_id is not None:
                    yield snapshot.step, slot

    def text(self, request_id: str, step: int | None = None) -> str | None:
        """The answer as visible at the end of `step` (of the run, if None); None where no model ran."""
        pieces = [slot.text for at, slot in self.tokens(request_id) if step is None or at <= step]
        if self.origin.runner is RunnerKind.SCRIPTED:
            return None
        return "".join(piece for piece in pieces if piece is not None)

    def waiting(self, step: int) -> list[tuple[str, WaitReason]]:
        """Who waited in this step, in order, each with the reason."""
        queue: dict[str, None] = {}
        for snapshot in self.steps[: step + 1]:
            queue.update(dict.fromkeys(snapshot.arrived))
            for request_id in (*snapshot.aborted, *(admission.request_id for admission in snapshot.admitted)):
                queue.pop(request_id, None)
        reason = self.steps[step].head_reason or WaitReason.BEHIND_HEAD
        return [(request_id, WaitReason.BEHIND_HEAD if place else reason) for place, request_id in enumerate(queue)]

    def events(self) -> Iterator[Event]:
        """Everything that happened to a request, step by step, in the order in which a step does it."""
        for snapshot in self.steps:
            at = snapshot.step
            yield from (Event(at, "arrived", request_id) for request_id in snapshot.arrived)
            yield from (Event(at, "rejected", rejection.request_id) for rejection in snapshot.rejected)
            yield from (Event(at, "aborted", request_id) for request_id in snapshot.aborted)
            yield from (Event(at, "admitted", admission.request_id) for admission in snapshot.admitted)
            yield from (Event(at, "finished", finish.request_id) for finish in snapshot.finished)
            yield from (Event(at, "delivered", request_id) for request_id in snapshot.delivered)
