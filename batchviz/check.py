"""Does a trace keep the rules of scheduling? Every invariant, read from the trace alone.

Owns: `check_trace`, which replays what a trace says and returns what contradicts it. Must not know: the scheduler's code.
It shares nothing with `scheduler.py` but the words, so it can accuse it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from batchviz.check_any import AnyPolicyCheck
from batchviz.check_rules import Seat, Seats, check_slot, feeds, reason_to_wait
from batchviz.request import FinishReason
from batchviz.scheduler import Policy, WaitReason
from batchviz.trace import (
    ArrivalUnit,
    RunConfig,
    SlotPhase,
    StepSnapshot,
    Trace,
    TracedRequest,
    TraceStatus,
)


@dataclass
class _Replay:
    """The state that the snapshots so far imply."""

    trace: Trace
    requests: dict[str, TracedRequest]
    queue: list[str] = field(default_factory=list)
    seats: Seats = field(default_factory=list)
    num_admitted: int = 0
    head_reason: WaitReason | None = None  # of the step at hand, after its admissions
    seen: set[str] = field(default_factory=set)  # arrived, rejected, or aborted before it arrived
    ended: set[str] = field(default_factory=set)
    delivered: list[str] = field(default_factory=list)  # in the step at hand
    now_s: float = 0.0
    step: int = 0

    @property
    def config(self) -> RunConfig:
        """The configuration of the step at hand."""
        return self.trace.config_at(self.step)

    @property
    def is_fork(self) -> bool:
        """Whether the configuration changed right before the step at hand."""
        return any(fork.step == self.step for fork in self.trace.forks)

    @property
    def queued(self) -> list[TracedRequest]:
        return [self.requests[request_id] for request_id in self.queue]

    def now(self, snapshot: StepSnapshot) -> float:
        """The time that arrivals are held against, in their unit."""
        in_steps = self.trace.scenario.arrival_unit is ArrivalUnit.STEPS
        return snapshot.step if in_steps else snapshot.start_s


def check_trace(trace: Trace) -> list[str]:
    """Returns what is wrong, one sentence each, first things first; an empty list if every rule holds.

    A run of somebody's own policy is held to what holds for any.
    """
    problems = list(_check_header(trace))
    if problems:
        return problems
    if trace.config.policy_class:
        any_policy = AnyPolicyCheck(trace.scenario.requests, trace.config)
        found = ((number, any_policy.take(snapshot)) for number, snapshot in enumerate(trace.steps))
        return [f"steps[{number}]: {problem}" for number, problem in found if problem is not None][:1]
    replay = _Replay(trace, {request.id: request for request in trace.scenario.requests})
    replay.seats = [None] * trace.config_at(0).num_slots
    for number, snapshot in enumerate(trace.steps):
        replay.step = number
        problems = [f"steps[{number}]: {problem}" for problem in _check_step(replay, number, snapshot)]
        if problems:
            return problems  # later steps are judged by a state that is already wrong
    if trace.status is TraceStatus.COMPLETE:
        missing = [request_id for request_id in replay.requests if request_id not in replay.ended]
        if missing:
            return [f"the status is complete, and request {missing[0]!r} never ended"]
    return []


def _check_header(trace: Trace) -> Iterator[str]:
    ids = [request.id for request in trace.scenario.requests]
    if len(set(ids)) != len(ids):
        yield "scenario.requests: an id is used twice"
    if trace.config.num_slots < 1:
        yield f"config.num_slots is {trace.config.num_slots}; expected at least 1"
    if trace.config.policy is Policy.SEQUENTIAL and trace.config.num_slots != 1:
        yield f"config.num_slots is {trace.config.num_slots}; a sequential run has 1"
    steps = [fork.step for fork in trace.forks]
    if steps != sorted(steps) or any(fork.step < 0 or fork.before.num_slots < 1 for fork in trace.forks):
        yield "forks: they must come in the order of their steps, from configurations of at least 1 slot"
    for i, request in enumerate(trace.scenario.requests):
        if request.num_prompt_tokens < 1 or request.max_output_tokens < 1 or request.arrival < 0:
            yield f"scenario.requests[{i}]: lengths must be at least 1, and an arrival at least 0"
        ids_given = request.prompt_token_ids
        if ids_given is not None and len(ids_given) != request.num_prompt_tokens:
            yield f"scenario.requests[{i}]: {len(ids_given)} prompt token ids, num_prompt_tokens {request.num_prompt_tokens}"


def _check_step(replay: _Replay, number: int, snapshot: StepSnapshot) -> Iterator[str]:
    if snapshot.step != number:
        yield f"step is {snapshot.step}; expected {number}"
        return
    if replay.is_fork and (problem := _fork(replay)) is not None:
        yield problem
        return
    if len(snapshot.slots) != len(replay.seats):
        yield f"{len(snapshot.slots)} slots; the configuration says {len(replay.seats)}"
        return
    if unknown := _unknown_ids(replay, snapshot):
        yield f"request {unknown!r} is not in the scenario"
        return
    yield from _check_times(replay, snapshot)
    yield from _check_arrivals(replay, snapshot)
    yield from _check_aborts(replay, snapshot)
    yield from _check_admissions(replay, snapshot)
    yield from _check_slots(replay, snapshot)
    yield from _check_endings(replay, snapshot)
    yield from _check_queue(replay, snapshot)


def _fork(replay: _Replay) -> str | None:
    """Makes as many seats as there are from here on; says so if somebody sits on one that goes."""
    num_slots = replay.config.num_slots
    if any(seat is not None for seat in replay.seats[num_slots:]):
        return f"the configuration changes to {num_slots} slots, and a higher one is occupied"
    replay.seats = [*replay.seats[:num_slots], *[None] * (num_slots - len(replay.seats))]
    return None


def _unknown_ids(replay: _Replay, snapshot: StepSnapshot) -> str | None:
    named = [
        *snapshot.arrived,
        *snapshot.aborted,
        *snapshot.delivered,
        *(rejection.request_id for rejection in snapshot.rejected),
        *(admission.request_id for admission in snapshot.admitted),
        *(finish.request_id for finish in snapshot.finished),
        *(slot.request_id for slot in snapshot.slots if slot.request_id is not None),
    ]
    return next((request_id for request_id in named if request_id not in replay.requests), None)


def _check_times(replay: _Replay, snapshot: StepSnapshot) -> Iterator[str]:
    if min(snapshot.schedule_s, snapshot.forward_s, snapshot.sample_s) < 0:
        yield "a duration is negative"
    in_steps = replay.trace.scenario.arrival_unit is ArrivalUnit.STEPS
    may_jump = not in_steps and all(seat is None for seat in replay.seats)  # over a gap in which nobody is there
    late = snapshot.start_s - replay.now_s
    if late < -1e-4 or (late > 1e-4 and not may_jump):
        yield f"start_s is {snapshot.start_s}; the steps before it took {replay.now_s:.6f} s"
    replay.now_s = snapshot.end_s
    fed = sum(slot.num_tokens for slot in snapshot.slots)
    if snapshot.num_rows != fed:
        yield f"num_rows is {snapshot.num_rows}; the slots fed {fed} tokens"


def _check_arrivals(replay: _Replay, snapshot: StepSnapshot) -> Iterator[str]:
    now = replay.now(snapshot)
    rejected = [rejection.request_id for rejection in snapshot.rejected]
    due = [
        request.id
        for request in sorted(replay.trace.scenario.requests, key=lambda request: request.arrival)
        if request.arrival <= now and request.id not in replay.seen and request.id not in snapshot.aborted
    ]
    came = list(snapshot.arrived) + rejected
    early = [request_id for request_id in snapshot.aborted if request_id not in replay.seen]
    for request_id in came + early:
        if request_id in replay.seen and request_id not in early:
            yield f"request {request_id!r} arrives twice"
    if not set(due) <= set(came):
        late = next(request_id for request_id in due if request_id not in came)
        yield f"request {late!r} was due by this step and did not arrive"
    for request_id in came:
        if replay.requests[request_id].arrival > now:
            yield f"request {request_id!r} arrives before its time ({replay.requests[request_id].arrival:g})"
    config = replay.config
    capacity = min(config.slot_capacity, config.kv_budget_tokens or config.slot_capacity)
    for request_id in came:
        request = replay.requests[request_id]
        fits = request.num_reserved_tokens <= capacity
        if fits is (request_id in rejected):
            yield f"request {request_id!r} is {'rejected and fits' if fits else 'accepted and does not fit'} in {capacity} positions"
    in_order = [request_id for request_id in due if request_id in snapshot.arrived]
    if in_order != [request_id for request_id in snapshot.arrived if request_id in due]:
        yield "requests join the queue out of order"
    replay.queue.extend(snapshot.arrived)
    replay.seen.update(came, early)
    replay.ended.update(rejected, early)


def _check_aborts(replay: _Replay, snapshot: StepSnapshot) -> Iterator[str]:
    seated = {seat.request.id: seat for seat in replay.seats if seat is not None}
    for request_id in snapshot.aborted:
        if request_id in replay.queue:
            replay.queue.remove(request_id)
        elif request_id in seated:
            seated[request_id].done, seated[request_id].has_answer = True, False
        elif request_id in replay.ended and replay.requests[request_id].arrival <= replay.now(snapshot):
            yield f"request {request_id!r} is aborted after its end"
        replay.ended.add(request_id)
    replay.delivered = _release(replay) if snapshot.aborted or replay.is_fork else []


def _check_admissions(replay: _Replay, snapshot: StepSnapshot) -> Iterator[str]:
    config, now = replay.config, replay.now(snapshot)
    expected: list[tuple[str, int]] = []
    while replay.queue and reason_to_wait(config, replay.seats, replay.queued, now) is None:
        slot = replay.seats.index(None)
        request_id = replay.queue.pop(0)
        replay.seats[slot] = Seat(replay.requests[request_id], replay.num_admitted)
        replay.num_admitted += 1
        expected.append((request_id, slot))
    replay.head_reason = reason_to_wait(config, replay.seats, replay.queued, now) if replay.queue else None
    if expected != list(snapshot.admitted):
        got = [list(admission) for admission in snapshot.admitted]
        yield f"admitted {got}; the policy and first come first served give {[list(pair) for pair in expected]}"


def _check_slots(replay: _Replay, snapshot: StepSnapshot) -> Iterator[str]:
    fed = feeds(replay.config, replay.seats)
    for slot, seat in enumerate(replay.seats):
        yield from check_slot(seat, snapshot.slots[slot], fed.get(slot, 0), f"slots[{slot}]")


def _check_endings(replay: _Replay, snapshot: StepSnapshot) -> Iterator[str]:
    finished = {finish.request_id: finish.reason for finish in snapshot.finished}
    for seat, shown in zip(replay.seats, snapshot.slots, strict=True):
        if seat is None or seat.done:
            continue
        reason = finished.pop(seat.request.id, None)
        limit = seat.request.max_output_tokens
        worked = shown.phase in (SlotPhase.PREFILL, SlotPhase.DECODE)
        if worked and not seat.reads and shown.token_id is None and reason is not FinishReason.ERROR:
            yield f"request {seat.request.id!r} works and gets no token"
        if reason is None and seat.num_output >= limit:
            yield f"request {seat.request.id!r} has all its {limit} tokens and does not finish"
        if reason is FinishReason.LENGTH and seat.num_output != limit:
            yield f"request {seat.request.id!r} finishes by length with {seat.num_output} of {limit} tokens"
        if reason is FinishReason.STOP and seat.request.output_tokens is not None:
            yield f"request {seat.request.id!r} stops by itself, though its length is exact"
        if reason in (FinishReason.ABORT, FinishReason.REJECTED):
            yield f"request {seat.request.id!r} finishes with {reason}, which no step does"
        if reason is not None:
            seat.done, seat.has_answer = True, reason is not FinishReason.ERROR
            replay.ended.add(seat.request.id)
    if finished:
        yield f"request {next(iter(finished))!r} finishes and was not working"
    expected = [*replay.delivered, *_release(replay)]
    if expected != list(snapshot.delivered):
        yield f"delivered {list(snapshot.delivered)}; the policy delivers {expected}"


def _release(replay: _Replay) -> list[str]:
    """Empties the seats that the policy lets go; returns who has an answer by that."""
    group_running = any(seat is not None and not seat.done for seat in replay.seats)
    if replay.config.policy is not Policy.CONTINUOUS and group_running:
        return []
    leaving = [(slot, seat) for slot, seat in enumerate(replay.seats) if seat is not None and seat.done]
    for slot, _ in leaving:
        replay.seats[slot] = None
    return [seat.request.id for _, seat in leaving if seat.has_answer]


def _check_queue(replay: _Replay, snapshot: StepSnapshot) -> Iterator[str]:
    if snapshot.num_waiting != len(replay.queue):
        yield f"num_waiting is {snapshot.num_waiting}; {len(replay.queue)} wait"
    head = replay.queue[0] if replay.queue else None
    if snapshot.head != head:
        yield f"head is {snapshot.head!r}; expected {head!r}"
    reason = replay.head_reason
    if snapshot.head_reason is not reason:
        yield f"head_reason is {snapshot.head_reason}; expected {reason}"
