"""Who computes what in this step, and who waits, and why.

Owns: the queue, the slots, the two policies. Must not know: logits, texts, clocks, widgets.
All policies share everything except two questions: *may I admit?* and *may I release?*
Iteration-level scheduling is Orca's (Yu et al., OSDI 2022, algorithm 1); the names are vLLM's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, NamedTuple

from batchviz.request import FinishReason, SamplingParams, Sequence, SequenceStatus


class Policy(StrEnum):
    """When a freed slot may be used again."""

    SEQUENTIAL = "sequential"
    STATIC = "static"
    CONTINUOUS = "continuous"


class PrefillMode(StrEnum):
    """How prompts share a step with decoding sequences."""

    MIXED = "mixed"


class WaitReason(StrEnum):
    """Why a request that has arrived is not in a slot in this step."""

    NO_FREE_SLOT = "no_free_slot"
    GROUP_RUNNING = "group_running"
    BEHIND_HEAD = "behind_head"


class ScheduledSequence(NamedTuple):
    """One line of the step's rota: this slot feeds these tokens, which sit at these positions."""

    slot: int
    request_id: str
    token_ids: tuple[int, ...]  # fed in this step: prompt tokens, or the last sampled one
    start_position: int  # position of the first of them in the sequence, counted from 0
    is_prefill: bool
    samples: bool  # True: a token is sampled after the last of them
    output_index: int  # how many output tokens the sequence had before this step
    sampling: SamplingParams
    masked_token_ids: frozenset[int]  # end tokens that may not be sampled (exact output lengths)


class Admission(NamedTuple):
    """A request that left the queue for a slot in this step."""

    request_id: str
    slot: int


class SchedulerOutput(NamedTuple):
    """The whole rota of one step, in slot order. This is all that a runner sees."""

    step: int
    scheduled: tuple[ScheduledSequence, ...]
    admitted: tuple[Admission, ...]


class Finish(NamedTuple):
    """A sequence that ended in this step, and why."""

    request_id: str
    reason: FinishReason


class SchedulerUpdate(NamedTuple):
    """What a step ended: sequences whose last token came, and sequences that gave their slot back."""

    finished: tuple[Finish, ...]
    released: tuple[Sequence, ...]


class Scheduler(ABC):
    """First come first served into the lowest free slot."""

    policy: ClassVar[Policy]

    def __init__(self, num_slots: int) -> None:
        if num_slots < 1:
            raise ValueError(f"num_slots is {num_slots}; an engine needs at least 1 slot")
        self.waiting: deque[Sequence] = deque()
        self.slots: list[Sequence | None] = [None] * num_slots

    @property
    def num_slots(self) -> int:
        return len(self.slots)

    @abstractmethod
    def may_admit(self) -> bool:
        """Asked once a step, before free slots are filled."""

    @abstractmethod
    def may_release(self) -> bool:
        """Asked at the end of a step: may the finished leave their slots now?"""

    @abstractmethod
    def head_reason(self) -> WaitReason:
        """Why the first in the queue was not admitted in this step. The ones after it wait `behind_head`."""

    def schedule(self, step: int) -> SchedulerOutput:
        """Fills free slots if the policy allows, then gives everyone who is seated and unfinished its work."""
        admitted: list[Admission] = []
        if self.waiting and self.may_admit():
            for slot, occupant in enumerate(self.slots):
                if occupant is None and self.waiting:
                    sequence = self.waiting.popleft()
                    sequence.slot, sequence.status = slot, SequenceStatus.RUNNING
                    self.slots[slot] = sequence
                    admitted.append(Admission(sequence.request.id, slot))

        # Mixed steps: a new sequence feeds its whole prompt, the others the one token they sampled last.
        scheduled = tuple(
            _work(slot, sequence)
            for slot, sequence in enumerate(self.slots)
            if sequence is not None and sequence.finish_reason is None
        )
        return SchedulerOutput(step, scheduled, tuple(admitted))

    def update(
        self, scheduled: tuple[ScheduledSequence, ...], token_ids: Mapping[int, int], failed: Mapping[int, str]
    ) -> SchedulerUpdate:
        """Gives each sequence its token (`token_ids` by slot), ends those that are done, frees what may be freed.

        A slot named in `failed` ends its sequence with `error`; nobody else is touched.
        """
        finished: list[Finish] = []
        for work in scheduled:
            sequence = self.slots[work.slot]
            assert sequence is not None, f"slot {work.slot} was scheduled and is empty"
            sequence.num_computed_tokens += len(work.token_ids)
            if work.slot in failed:
                sequence.finish(FinishReason.ERROR)
            elif work.samples:
                sequence.append(token_ids[work.slot])
            if sequence.finish_reason is not None:
                finished.append(Finish(work.request_id, sequence.finish_reason))
        return SchedulerUpdate(tuple(finished), self.release())

    def release(self) -> tuple[Sequence, ...]:
        """Frees every slot that the policy lets go; returns who sat there."""
        if not self.may_release():
            return ()
        released = tuple(
            sequence for sequence in self.slots if sequence is not None and sequence.finish_reason is not None
        )
        for sequence in released:
            assert sequence.slot is not None
            self.slots[sequence.slot] = None
        return released

    def abort(self, sequence: Sequence) -> None:
        """The user has left. A waiting sequence leaves the queue; a seated one ends, and its slot follows the policy."""
        if sequence.status is SequenceStatus.WAITING:
            self.waiting.remove(sequence)
        sequence.user_left = True
        sequence.finish(FinishReason.ABORT)


class ContinuousScheduler(Scheduler):
    """Admit when a slot is free; release at once."""

    policy = Policy.CONTINUOUS

    def may_admit(self) -> bool:
        return True

    def may_release(self) -> bool:
        return True

    def head_reason(self) -> WaitReason:
        return WaitReason.NO_FREE_SLOT


class StaticScheduler(Scheduler):
    """Admit when every slot is empty; release when the whole group is finished."""

    policy = Policy.STATIC

    def may_admit(self) -> bool:
        return all(sequence is None for sequence in self.slots)

    def may_release(self) -> bool:
        return all(member is None or member.finish_reason is not None for member in self.slots)

    def head_reason(self) -> WaitReason:
        return WaitReason.GROUP_RUNNING


class SequentialScheduler(StaticScheduler):
    """One request at a time: static batching with a group of one."""

    policy = Policy.SEQUENTIAL

    def __init__(self, num_slots: int = 1) -> None:
        super().__init__(1)

    def head_reason(self) -> WaitReason:
        return WaitReason.NO_FREE_SLOT


def make_scheduler(policy: Policy, num_slots: int) -> Scheduler:
    """The scheduler of a policy. `sequential` always has one slot, whatever was asked."""
    for kind in (SequentialScheduler, StaticScheduler, ContinuousScheduler):
        if kind.policy is policy:
            return kind(num_slots)
    raise ValueError(f"policy {policy!r} is unknown; there are {', '.join(Policy)}")


def _work(slot: int, sequence: Sequence) -> ScheduledSequence:
    request = sequence.request
    prefilling = sequence.is_prefilling
    return ScheduledSequence(
        slot=slot,
        request_id=request.id,
        token_ids=request.prompt_token_ids if prefilling else (sequence.output_token_ids[-1],),
        start_position=sequence.num_computed_tokens,
        is_prefill=prefilling,
        samples=True,
        output_index=len(sequence.output_token_ids),
        sampling=request.sampling,
        masked_token_ids=request.stop_token_ids if request.output_tokens is not None else frozenset(),
    )
