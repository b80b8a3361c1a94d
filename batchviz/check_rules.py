"""What the rules of a step allow, said again without the scheduler: the arithmetic behind `check.py`.

Owns: who is admitted, who is fed how much, what a slot then shows, why the head waits. Must not know: the scheduler's code, whole traces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from batchviz.prefill import PrefillMode
from batchviz.scheduler import Policy, WaitReason
from batchviz.trace import RunConfig, SlotPhase, SlotSnapshot, TracedRequest


@dataclass
class Seat:
    """What the replay knows of the sequence in a slot."""

    request: TracedRequest
    turn: int  # of its admission
    num_computed: int = 0
    num_output: int = 0
    done: bool = False
    has_answer: bool = True  # False once its user left or it failed: nothing will be delivered

    @property
    def reads(self) -> int:
        """What is left of its prompt."""
        return max(self.request.num_prompt_tokens - self.num_computed, 0)


Seats = list[Seat | None]


def reason_to_wait(config: RunConfig, seats: Seats, queue: list[TracedRequest], now: float) -> WaitReason | None:
    """Why the head of the queue may not sit down now; None if it may."""
    seated = [seat for seat in seats if seat is not None]
    full = len(seated) == len(seats)
    head = queue[0]
    if config.policy is Policy.STATIC:
        if full or any(seat.num_computed for seat in seated):
            return WaitReason.GROUP_RUNNING
        group_full = len(queue) >= len(seats)
        if not seated and not group_full and now < head.arrival + config.group_timeout:
            return WaitReason.GROUP_FILLING
    elif full:
        return WaitReason.NO_FREE_SLOT
    elif config.policy is Policy.CONTINUOUS and config.max_batched_tokens is not None:
        wanted = sum(max(seat.reads, 1) for seat in seated if not seat.done)
        if wanted >= config.max_batched_tokens:
            return WaitReason.TOKEN_BUDGET
    reserved = sum(seat.request.num_reserved_tokens for seat in seated) + head.num_reserved_tokens
    if reserved > (math.inf if config.kv_budget_tokens is None else config.kv_budget_tokens):
        return WaitReason.KV_CAPACITY
    return None


def feeds(config: RunConfig, seats: Seats) -> dict[int, int]:
    """Slot -> how many tokens it is fed in this step, for every unfinished seat (0 is stalled)."""
    working = {slot: seat for slot, seat in enumerate(seats) if seat is not None and not seat.done}
    if config.prefill is PrefillMode.MIXED:
        return {slot: seat.reads or 1 for slot, seat in working.items()}
    if config.prefill is PrefillMode.EXCLUSIVE:
        reading = any(seat.reads for seat in working.values())
        return {slot: seat.reads if reading else 1 for slot, seat in working.items()}
    left = config.max_batched_tokens or 0
    shares = {slot: 1 for slot, seat in working.items() if not seat.reads}
    left -= len(shares)
    for slot, seat in sorted(working.items(), key=lambda pair: pair[1].turn):
        if seat.reads:
            shares[slot] = min(seat.reads, left)
            left -= shares[slot]
    return shares


def check_slot(seat: Seat | None, shown: SlotSnapshot, feed: int, place: str) -> Iterator[str]:
    """What is wrong with a slot that should be fed so many tokens; then counts what it was fed."""
    if seat is None:
        if shown.phase is not SlotPhase.EMPTY or shown.request_id is not None or shown.num_tokens:
            yield f"{place} is {shown.phase} with {shown.request_id!r}; nobody sits there"
        return
    if shown.request_id != seat.request.id:
        yield f"{place} shows {shown.request_id!r}; {seat.request.id!r} sits there"
        return
    reads = seat.reads
    working = SlotPhase.PREFILL if reads else SlotPhase.DECODE
    expected = SlotPhase.HELD if seat.done else working if feed else SlotPhase.STALLED
    if shown.phase is not expected:
        yield f"{place} is {shown.phase}; by the steps before it is {expected}"
        return
    if not feed:
        if shown.num_tokens or shown.token_id is not None:
            yield f"{place} is {shown.phase} and yet works"
        return
    if (shown.position, shown.num_tokens) != (seat.num_computed, feed):
        yield f"{place} feeds {shown.num_tokens} from position {shown.position}; expected {feed} from {seat.num_computed}"
    if shown.token_id is not None and reads > feed:
        yield f"{place} gets a token before its whole prompt is read"
    seat.num_computed += shown.num_tokens
    seat.num_output += shown.token_id is not None
