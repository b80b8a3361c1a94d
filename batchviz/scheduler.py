"""Who computes what in this step, and who waits, and why.

Owns: the queue, the slots, the two policies. Must not know: logits, texts, clocks, widgets.
All policies share everything except two questions: *may I admit?* and *may I release?*
Iteration-level scheduling is Orca's (Yu et al., OSDI 2022, algorithm 1); the names are vLLM's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, NamedTuple

from batchviz.prefill import MixedPrefill, Prefill, PrefillMode, make_prefill
from batchviz.request import FinishReason, SamplingParams, Sequence, SequenceStatus

NOTHING_MASKED: frozenset[int] = frozenset()


class Policy(StrEnum):
    """When a freed slot may be used again."""

    SEQUENTIAL = "sequential"
    STATIC = "static"
    CONTINUOUS = "continuous"


class WaitReason(StrEnum):
    """Why a request that has arrived is not in a slot in this step."""

    NO_FREE_SLOT = "no_free_slot"
    GROUP_RUNNING = "group_running"  # static: the group in the slots has not ended
    GROUP_FILLING = "group_filling"  # static with a time-out: the next group is not full yet
    TOKEN_BUDGET = "token_budget"  # chunked: those seated use up the step's budget
    KV_CAPACITY = "kv_capacity"  # the KV budget has no room for its prompt and all its possible tokens
    BEHIND_HEAD = "behind_head"  # first come first served: the one before it cannot go


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
    head_reason: WaitReason | None = None  # why the first of the queue was not admitted; None if nobody waits


class Finish(NamedTuple):
    """A sequence that ended in this step, and why."""

    request_id: str
    reason: FinishReason


class SchedulerUpdate(NamedTuple):
    """What a step ended: sequences whose last token came, and sequences that gave their slot back."""

    finished: tuple[Finish, ...]
    released: tuple[Sequence, ...]


class Scheduler(ABC):
    """First come first served into the lowest free slot.

    `kv_budget_tokens` bounds the KV positions that seated sequences reserve together: each its prompt and every token
    it may still produce, as Orca's algorithm 1 does. Nobody overtakes a head that does not fit.
    """

    policy: ClassVar[Policy]

    def __init__(self, num_slots: int, prefill: Prefill | None = None, kv_budget_tokens: int | None = None) -> None:
        if num_slots < 1:
            raise ValueError(f"num_slots is {num_slots}; an engine needs at least 1 slot")
        self.waiting: deque[Sequence] = deque()
        self.slots: list[Sequence | None] = [None] * num_slots
        self.num_reserved_tokens = 0
        self._prefill = prefill or MixedPrefill()
        self.kv_budget = math.inf if kv_budget_tokens is None else kv_budget_tokens
        self._num_admitted = 0

    def __repr__(self) -> str:
        seated = ", ".join("empty" if sequence is None else sequence.request.id for sequence in self.slots)
        return f"<{self.policy}: slots [{seated}], {len(self.waiting)} wait>"

    @property
    def num_slots(self) -> int:
        return len(self.slots)

    @abstractmethod
    def why_not_admit(self, now: float) -> WaitReason | None:
        """May the head take a free slot now, as far as the policy goes? None if it may, else why it waits."""

    @abstractmethod
    def may_release(self) -> bool:
        """Asked at the end of a step: may the finished leave their slots now?"""

    def wakes_at(self) -> float | None:
        """When the passing of time alone would admit the head of the queue; None if it would not."""
        return None

    def why_head_waits(self, now: float) -> WaitReason | None:
        """Why the first in the queue cannot be admitted now; None if it can. Those after it wait `behind_head`."""
        if (reason := self.why_not_admit(now)) is not None:
            return reason
        if None not in self.slots:
            return WaitReason.NO_FREE_SLOT
        if self.num_reserved_tokens + self.waiting[0].request.num_reserved_tokens > self.kv_budget:
            return WaitReason.KV_CAPACITY
        return None

    def schedule(self, step: int, now: float) -> SchedulerOutput:
        """Fills free slots, oldest first, while nothing speaks against it; then gives the seated their work."""
        admitted: list[Admission] = []
        while self.waiting and self.why_head_waits(now) is None:
            admitted.append(self._admit(self.waiting.popleft()))

        seated = [sequence for sequence in self.slots if sequence is not None and sequence.finish_reason is None]
        shares = self._prefill.shares(seated)
        scheduled = tuple([_work(sequence, share) for sequence, share in zip(seated, shares, strict=True) if share])
        reason = self.why_head_waits(now) if self.waiting else None
        return SchedulerOutput(step, scheduled, tuple(admitted), reason)

    def _admit(self, sequence: Sequence) -> Admission:
        slot = self.slots.index(None)
        sequence.slot, sequence.status = slot, SequenceStatus.RUNNING
        sequence.admission = self._num_admitted
        self._num_admitted += 1
        self.num_reserved_tokens += sequence.request.num_reserved_tokens
        self.slots[slot] = sequence
        return Admission(sequence.request.id, slot)

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
        released = tuple([sequence for sequence in self.slots if sequence is not None and sequence.finish_reason])
        for sequence in released:
            assert sequence.slot is not None
            self.slots[sequence.slot] = None
            self.num_reserved_tokens -= sequence.request.num_reserved_tokens
        return released

    def take_over(self, other: Scheduler) -> None:
        """Goes on where another left off. Raises ValueError if a slot is occupied that this one does not have."""
        highest = max((slot for slot, sequence in enumerate(other.slots) if sequence is not None), default=-1)
        if highest >= self.num_slots:
            raise ValueError(f"slot {highest} is occupied, so there must be at least {highest + 1} slots")
        self.waiting = other.waiting
        self.slots = [*other.slots[: self.num_slots], *[None] * (self.num_slots - other.num_slots)]
        self.num_reserved_tokens = other.num_reserved_tokens
        self._num_admitted = other._num_admitted

    def abort(self, sequence: Sequence) -> None:
        """The user has left. A waiting sequence leaves the queue; a seated one ends, and its slot follows the policy."""
        if sequence.status is SequenceStatus.WAITING:
            self.waiting.remove(sequence)
        sequence.user_left = True
        sequence.finish(FinishReason.ABORT)


class ContinuousScheduler(Scheduler):
    """Admit when a slot is free; release at once."""

    policy = Policy.CONTINUOUS

    def why_not_admit(self, now: float) -> WaitReason | None:
        if None not in self.slots:
            return WaitReason.NO_FREE_SLOT
        seated = (sequence for sequence in self.slots if sequence is not None and sequence.finish_reason is None)
        return WaitReason.TOKEN_BUDGET if self._prefill.tokens_left(seated) < 1 else None

    def may_release(self) -> bool:
        return True


class StaticScheduler(Scheduler):
    """Admit while nobody seated has begun; release when the whole group is finished.

    With a `group_timeout` (in the unit of `now`) a group that is not full begins only once its oldest member has waited
    so long, as dynamic batchers have it. Without one it takes whoever is there.
    """

    policy = Policy.STATIC

    def __init__(
        self,
        num_slots: int,
        prefill: Prefill | None = None,
        kv_budget_tokens: int | None = None,
        group_timeout: float = 0,
    ) -> None:
        super().__init__(num_slots, prefill, kv_budget_tokens)
        self._group_timeout = group_timeout

    def why_not_admit(self, now: float) -> WaitReason | None:
        seated = [sequence for sequence in self.slots if sequence is not None]
        if len(seated) == self.num_slots or any(sequence.num_computed_tokens > 0 for sequence in seated):
            return WaitReason.GROUP_RUNNING
        wakes_at = self.wakes_at()
        return WaitReason.GROUP_FILLING if not seated and wakes_at is not None and now < wakes_at else None

    def wakes_at(self) -> float | None:
        if not self.waiting or len(self.waiting) >= self.num_slots:
            return None
        return self.waiting[0].request.arrival + self._group_timeout

    def may_release(self) -> bool:
        return all(member is None or member.finish_reason is not None for member in self.slots)


class SequentialScheduler(StaticScheduler):
    """One request at a time: static batching with a group of one, that is full as soon as somebody waits."""

    policy = Policy.SEQUENTIAL

    def why_not_admit(self, now: float) -> WaitReason | None:
        return None if None in self.slots else WaitReason.NO_FREE_SLOT


def make_scheduler(
    policy: Policy,
    num_slots: int,
    *,
    prefill: PrefillMode = PrefillMode.MIXED,
    max_batched_tokens: int | None = None,
    kv_budget_tokens: int | None = None,
    group_timeout: float = 0,
) -> Scheduler:
    """The scheduler of a configuration. `sequential` always has one slot. Raises ValueError with one sentence."""
    num_slots = 1 if policy is Policy.SEQUENTIAL else num_slots
    rule = make_prefill(prefill, num_slots, max_batched_tokens)
    if policy is Policy.STATIC:
        return StaticScheduler(num_slots, rule, kv_budget_tokens, group_timeout)
    if group_timeout:
        raise ValueError(f"group_timeout belongs to policy static; the policy is {policy}")
    kind = SequentialScheduler if policy is Policy.SEQUENTIAL else ContinuousScheduler
    return kind(num_slots, rule, kv_budget_tokens)


def _work(sequence: Sequence, num_tokens: int) -> ScheduledSequence:
    """The fields by position: this is made for every slot in every step."""
    request, start = sequence.request, sequence.num_computed_tokens
    assert sequence.slot is not None
    masked = request.stop_token_ids if request.output_tokens is not None else NOTHING_MASKED
    num_output_tokens = len(sequence.output_token_ids)
    if start >= sequence.num_prompt_tokens:
        fed: tuple[int, ...] = (sequence.output_token_ids[-1],)
        return ScheduledSequence(
            sequence.slot, request.id, fed, start, False, True, num_output_tokens, request.sampling, masked
        )
    fed = request.prompt_token_ids[start : start + num_tokens]
    samples = start + num_tokens == sequence.num_prompt_tokens
    return ScheduledSequence(
        sequence.slot, request.id, fed, start, True, samples, num_output_tokens, request.sampling, masked
    )
