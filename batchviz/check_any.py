"""The rules that hold whatever the policy: nobody is lost, nobody sits twice, nothing is computed that was not fed.

Owns: AnyPolicyCheck, which is fed the snapshots of a run one by one. Must not know: which policy decides, the scheduler's code.
It is for policies of one's own; `check.py` also holds a run to first come, first served and to its policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from batchviz.request import FinishReason
from batchviz.trace import RunConfig, SlotPhase, StepSnapshot, TracedRequest

MAX_STUCK = 1_000  # steps in which somebody waits or sits and nobody is given work


@dataclass
class _Seat:
    request: TracedRequest
    num_computed: int = 0
    num_output: int = 0
    done: bool = False


class AnyPolicyCheck:
    """`take` each snapshot in order; it returns the first rule that is broken, as a sentence, or None."""

    def __init__(self, requests: Sequence[TracedRequest], config: RunConfig) -> None:
        self._requests = {request.id: request for request in requests}
        self._config = config
        self._queue: dict[str, None] = {}
        self._seats: list[_Seat | None] = [None] * config.num_slots
        self._seen: set[str] = set()
        self._delivered: set[str] = set()
        self._num_stuck = 0

    def take(self, snapshot: StepSnapshot) -> str | None:
        return next(self._broken(snapshot), None)

    def _broken(self, snapshot: StepSnapshot) -> Iterator[str]:
        yield from self._arrivals(snapshot)
        yield from self._seating(snapshot)
        yield from self._work(snapshot)
        yield from self._endings(snapshot)
        if snapshot.num_waiting != len(self._queue):
            yield f"{snapshot.num_waiting} are said to wait, and {len(self._queue)} do: somebody was lost or is there twice"
        stuck = snapshot.num_rows == 0 and (self._queue or any(self._seats))
        self._num_stuck = self._num_stuck + 1 if stuck else 0
        if self._num_stuck >= MAX_STUCK:
            yield f"nobody was given work for {MAX_STUCK:,} steps, though {len(self._queue)} wait"

    def _arrivals(self, snapshot: StepSnapshot) -> Iterator[str]:
        for request_id in snapshot.arrived:
            if request_id in self._seen:
                yield f"{request_id} arrives twice"
            self._seen.add(request_id)
            self._queue[request_id] = None
        for request_id in snapshot.aborted:
            self._queue.pop(request_id, None)
            for seat in self._seats:
                if seat is not None and seat.request.id == request_id:
                    seat.done = True

    def _seating(self, snapshot: StepSnapshot) -> Iterator[str]:
        admitted = {admission.slot: admission.request_id for admission in snapshot.admitted}
        for slot, seat in enumerate(self._seats):
            if seat is None or snapshot.slots[slot].request_id == seat.request.id:
                continue
            if not seat.done:
                yield f"{seat.request.id} lost slot {slot} before it was finished"
            self._seats[slot] = None
        for slot, request_id in admitted.items():
            if request_id not in self._queue:
                yield f"{request_id} is admitted and does not wait"
                continue
            if self._seats[slot] is not None:
                yield f"{request_id} is admitted to slot {slot}, which is occupied"
            del self._queue[request_id]
            self._seats[slot] = _Seat(self._requests[request_id])
        reserved = sum(seat.request.num_reserved_tokens for seat in self._seats if seat is not None)
        if self._config.kv_budget_tokens is not None and reserved > self._config.kv_budget_tokens:
            yield f"{reserved:,} KV positions are reserved, the budget has {self._config.kv_budget_tokens:,}"

    def _work(self, snapshot: StepSnapshot) -> Iterator[str]:
        for slot, (seat, shown) in enumerate(zip(self._seats, snapshot.slots, strict=True)):
            if seat is None:
                if shown.request_id is not None:
                    yield f"{shown.request_id} sits in slot {slot} and was never admitted there"
                continue
            if shown.num_tokens and seat.done:
                yield f"{seat.request.id} is finished and works on in slot {slot}"
            if shown.num_tokens and shown.position != seat.num_computed:
                yield f"{seat.request.id} is fed from position {shown.position}, and {seat.num_computed} are computed"
            if shown.phase is SlotPhase.PREFILL and shown.position + shown.num_tokens > seat.request.num_prompt_tokens:
                yield f"{seat.request.id} is fed more than its prompt"
            seat.num_computed += shown.num_tokens
            seat.num_output += shown.token_id is not None
        budget = self._config.max_batched_tokens
        if budget is not None and snapshot.num_rows > budget:
            yield f"{snapshot.num_rows:,} tokens are fed in one step, the budget has {budget:,}"

    def _endings(self, snapshot: StepSnapshot) -> Iterator[str]:
        seats = {seat.request.id: seat for seat in self._seats if seat is not None}
        for request_id, reason in snapshot.finished:
            seat = seats.get(request_id)
            if seat is None or seat.done:
                yield f"{request_id} finishes and was not at work"
                continue
            if reason is FinishReason.LENGTH and seat.num_output != seat.request.max_output_tokens:
                yield f"{request_id} finishes by length with {seat.num_output} of {seat.request.max_output_tokens} tokens"
            seat.done = True
        for seat in seats.values():
            if not seat.done and seat.num_output >= seat.request.max_output_tokens:
                yield f"{seat.request.id} has all its tokens and does not finish"
        for request_id in snapshot.delivered:
            seat = seats.get(request_id)
            if request_id in self._delivered or seat is None or not seat.done:
                yield f"{request_id} is delivered twice, or before it is finished"
            self._delivered.add(request_id)
