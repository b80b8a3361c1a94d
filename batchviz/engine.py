"""The engine: one step at a time, one frozen snapshot a step.

Owns: Engine.step(), run(), add(), abort(), the run's clock. Must not know: which policy runs, which runner computes,
who looks on. There is no thread, no callback and no printing in here; whoever wants to watch calls step().
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from batchviz.request import Request, Sequence, SequenceStatus
from batchviz.runner import Detokenizer, ModelRunner, NoText, RunnerOutput
from batchviz.scheduler import Scheduler, SchedulerOutput
from batchviz.trace import EMPTY_SLOT, ArrivalUnit, Rejection, SlotPhase, SlotSnapshot, StepSnapshot

MAX_IDLE_STEPS = 10_000


def no_clock() -> float:
    """The clock of runs whose seconds are modelled: scheduling costs nothing, so a trace is the same every time."""
    return 0.0


def _microseconds(seconds: float) -> float:
    """Seconds to whole microseconds: what a clock can tell, and what a file gives back exactly; never less than none."""
    return round(max(seconds, 0.0), 6)


class EngineLimitError(ValueError):
    """A run was asked for that this engine does not make. The message says what would be right."""


class Engine:
    """Runs requests to their end, step by step.

    `slot_capacity` is the number of KV positions of one slot. `clock` returns seconds and may only go forward. With
    arrivals in seconds the run's time is the sum of its steps' durations; where nobody is there it jumps, never sleeps.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: ModelRunner,
        *,
        slot_capacity: int = 1024,
        detokenizer: Detokenizer | None = None,
        clock: Callable[[], float] = no_clock,
        arrival_unit: ArrivalUnit = ArrivalUnit.STEPS,
    ) -> None:
        self._scheduler = scheduler
        self._runner = runner
        self._detokenizer = detokenizer or NoText()
        self._clock = clock
        self._slot_capacity = slot_capacity
        self._arrival_unit = arrival_unit
        self._pending: deque[Request] = deque()  # submitted, not yet arrived, in order of arrival
        self._sequences: dict[str, Sequence] = {}  # arrived and not yet gone
        self._known_ids: set[str] = set()
        self._aborts: list[str] = []
        self._is_rescheduled = False
        self._step = 0
        self._now_s = 0.0
        self._num_idle_steps = 0

    def __repr__(self) -> str:
        return f"<Engine: step {self._step} is next, {len(self._pending)} not arrived, {self._scheduler!r}>"

    @property
    def step_number(self) -> int:
        """The number of the step that comes next; equally, how many there have been."""
        return self._step

    @property
    def has_work(self) -> bool:
        """False once every submitted request has ended and every answer is with its user."""
        return bool(self._pending or self._sequences or self._aborts)

    def add(self, request: Request) -> None:
        """Submits a request. One that arrives in the past arrives with the next step. Raises ValueError on a known id."""
        self.add_all([request])

    def add_all(self, requests: Iterable[Request]) -> None:
        """Submits many. Ties in arrival go by the order in which they were submitted."""
        for request in requests:
            if request.id in self._known_ids:
                raise ValueError(f"request id {request.id!r} is used twice; ids must be unique")
            self._known_ids.add(request.id)
            self._pending.append(request)
        self._pending = deque(sorted(self._pending, key=lambda request: request.arrival))

    def abort(self, request_id: str) -> None:
        """The user leaves. Takes effect before the next step's admissions. Raises KeyError on an unknown id."""
        if request_id not in self._known_ids:
            raise KeyError(f"no request has the id {request_id!r}")
        self._aborts.append(request_id)

    def reschedule(self, scheduler: Scheduler) -> None:
        """Another scheduler decides from the next step on; whom it would have let go leaves before its admissions.

        Raises ValueError if a slot is occupied that it does not have.
        """
        scheduler.take_over(self._scheduler)
        self._scheduler = scheduler
        self._is_rescheduled = True

    def step(self) -> StepSnapshot:
        """One iteration: arrivals, admissions, one forward pass over the packed batch, sampling, endings."""
        started_s = self._clock()
        arrived, rejected = self._take_arrivals()
        aborted, freed_by_abort = self._apply_aborts()
        scheduled = self._scheduler.schedule(self._step, self._now)
        occupants = self._scheduler.slots.copy()
        scheduled_s = self._clock()

        output = self._runner.execute(scheduled)

        updating_s = self._clock()
        update = self._scheduler.update(scheduled.scheduled, output.token_ids, output.errors)
        delivered = self._dismiss(freed_by_abort + update.released)
        slots = tuple(self._slot_snapshots(occupants, scheduled, output))
        waiting = self._scheduler.waiting
        snapshot = StepSnapshot(
            step=self._step,
            start_s=self._now_s,
            schedule_s=_microseconds((scheduled_s - started_s) + (self._clock() - updating_s)),
            forward_s=_microseconds(output.forward_s),
            sample_s=_microseconds(output.sample_s),
            num_rows=output.num_rows,
            num_dummy_rows=output.num_dummy_rows,
            slots=slots,
            arrived=arrived,
            rejected=rejected,
            aborted=aborted,
            admitted=scheduled.admitted,
            finished=update.finished,
            delivered=delivered,
            num_waiting=len(waiting),
            head=waiting[0].request.id if waiting else None,
            head_reason=scheduled.head_reason,
        )
        self._now_s = max(self._now_s, _microseconds(snapshot.end_s))
        self._step += 1
        return snapshot

    def run(self, max_steps: int | None = None) -> list[StepSnapshot]:
        """Steps until nothing is left to do, or `max_steps` have been made."""
        snapshots: list[StepSnapshot] = []
        while self.has_work and (max_steps is None or len(snapshots) < max_steps):
            snapshots.append(self.step())
        return snapshots

    @property
    def _now(self) -> float:
        """The time that arrivals are held against, in their unit."""
        return self._step if self._arrival_unit is ArrivalUnit.STEPS else self._now_s

    def _take_arrivals(self) -> tuple[tuple[str, ...], tuple[Rejection, ...]]:
        arrived: list[str] = []
        rejected: list[Rejection] = []
        while True:
            while self._pending and self._pending[0].arrival <= self._now:
                request = self._pending.popleft()
                if (why := self._why_never(request)) is not None:
                    rejected.append(Rejection(request.id, why))
                    continue
                sequence = Sequence(request)
                self._sequences[request.id] = sequence
                self._scheduler.waiting.append(sequence)
                arrived.append(request.id)
            if not self._crosses_gap():
                return tuple(arrived), tuple(rejected)

    def _crosses_gap(self) -> bool:
        """If nobody can work now: seconds jump to when somebody might (True); steps are counted, and not without end."""
        waiting = self._scheduler.waiting
        if len(self._sequences) > len(waiting):
            return False  # somebody is seated
        if self._arrival_unit is ArrivalUnit.STEPS:
            if self._pending and not waiting:
                self._count_idle_step(self._pending[0])
            return False
        if waiting and self._scheduler.why_head_waits(self._now_s) is None:
            return False
        arrival = self._pending[0].arrival if self._pending else None
        wakes = [at for at in (arrival, self._scheduler.wakes_at()) if at is not None]
        if not wakes:
            return False
        self._now_s = max(self._now_s, min(wakes))
        return True

    def _count_idle_step(self, next_request: Request) -> None:
        gap = next_request.arrival - self._step
        if self._num_idle_steps + gap > MAX_IDLE_STEPS:
            raise EngineLimitError(
                f"request {next_request.id!r} arrives at step {next_request.arrival:g}, and by then nobody would "
                f"have been there for more than {MAX_IDLE_STEPS:,} steps; let it arrive earlier"
            )
        self._num_idle_steps += 1

    def _why_never(self, request: Request) -> str | None:
        """Why no slot could ever hold it, with the arithmetic; None if one can."""
        need = request.num_reserved_tokens
        arithmetic = f"needs {request.num_prompt_tokens} prompt + {request.max_output_tokens} output tokens = {need} KV positions"
        if need > self._slot_capacity:
            return f"{arithmetic}; a slot has {self._slot_capacity}"
        if need > self._scheduler.kv_budget:
            return f"{arithmetic}; the KV budget has {self._scheduler.kv_budget:g}"
        return None

    def _apply_aborts(self) -> tuple[tuple[str, ...], tuple[Sequence, ...]]:
        """Ends what users have left; frees what waited only for such a one (static: a group's last member)."""
        if not self._aborts and not self._is_rescheduled:
            return (), ()
        self._is_rescheduled = False
        aborted: list[str] = []
        for request_id in dict.fromkeys(self._aborts):
            sequence = self._sequences.get(request_id)
            if sequence is not None and not sequence.user_left:
                if sequence.status is SequenceStatus.WAITING:
                    del self._sequences[request_id]
                self._scheduler.abort(sequence)
                aborted.append(request_id)
            elif any(request.id == request_id for request in self._pending):  # left before it arrived
                self._pending = deque(request for request in self._pending if request.id != request_id)
                aborted.append(request_id)
        self._aborts.clear()
        return tuple(aborted), self._scheduler.release()

    def _dismiss(self, released: tuple[Sequence, ...]) -> tuple[str, ...]:
        """Forgets sequences that hold no slot any more; returns the ids whose users now have their answer."""
        for sequence in released:
            del self._sequences[sequence.request.id]
        return tuple(sequence.request.id for sequence in released if sequence.is_deliverable)

    def _slot_snapshots(
        self, occupants: list[Sequence | None], scheduled: SchedulerOutput, output: RunnerOutput
    ) -> Iterator[SlotSnapshot]:
        """What each slot did. `occupants` sat there during the step; some have left since."""
        working = {work.slot: work for work in scheduled.scheduled}
        push = self._detokenizer.push
        for slot, sequence in enumerate(occupants):
            if sequence is None:
                yield EMPTY_SLOT
                continue
            request_id = sequence.request.id
            work = working.get(slot)
            if work is None:
                phase = SlotPhase.HELD if sequence.status is SequenceStatus.FINISHED else SlotPhase.STALLED
                yield SlotSnapshot(phase, request_id)
                continue
            token_id = output.token_ids.get(slot) if work.samples else None
            text = None if token_id is None else push(request_id, token_id, sequence.finish_reason is not None)
            phase = SlotPhase.PREFILL if work.is_prefill else SlotPhase.DECODE
            yield SlotSnapshot(phase, request_id, work.start_position, len(work.token_ids), token_id, text)
