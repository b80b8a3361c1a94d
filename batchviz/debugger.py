"""A run driven by hand: a step, a phase, an event at a time, to a condition, back again; changed, forked, watched.

Owns: DebugSession, its history and its cursor. Must not know: torch, pages, terminals, how a run is put together.
Going back shows history, going forward from its end computes. What is past cannot be changed; a fork replays it exactly,
which is checked, and changes what lies ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from batchviz.breakpoints import Breakpoint
from batchviz.debug_run import DebugError, Seen, Start, Started
from batchviz.ledger import Facts, Ledger
from batchviz.scenario import ScenarioRequest
from batchviz.trace import ArrivalUnit, RunConfig, StepSnapshot, Trace, TracedRequest

MAX_STEPS = 100_000


class Phase(StrEnum):
    """The phases of a step, in their order."""

    ADMIT = "arrivals and admissions"
    PACK = "the packed batch"
    FORWARD = "the forward pass"
    SAMPLE = "sampling"
    FINISH = "finish checks"
    RELEASE = "releases and deliveries"


PHASES = tuple(Phase)


class Action(NamedTuple):
    """What somebody did before a step: exactly one of the three."""

    step: int
    injected: tuple[TracedRequest, frozenset[int]] | None = None
    aborted: str | None = None
    config: RunConfig | None = None


class Stop(NamedTuple):
    """Why `run_until` stopped: breakpoints that hit, each with its sentence; none at the end of the run or the limit."""

    step: int | None
    hits: tuple[tuple[Breakpoint, str], ...]
    message: str


class DebugSession:
    """One run and where somebody stands in it. `shown` is the step on show, None before the first."""

    def __init__(self, start: Start, config: RunConfig, started: Started | None = None) -> None:
        self._start = start
        self._first_config = config
        self._actions: list[Action] = []
        self._started = start.begin(config) if started is None else started
        self._ledger = Ledger()
        self._cursor = -1
        self._phase = len(PHASES) - 1

    @property
    def trace(self) -> Trace:
        """All there is so far, the steps ahead of the cursor included."""
        return self._started.run.trace()

    @property
    def num_steps(self) -> int:
        return len(self._ledger)

    @property
    def shown(self) -> int | None:
        return None if self._cursor < 0 else self._cursor

    @property
    def now(self) -> float:
        """The arrival of whoever comes before the next step that is computed, in the scenario's unit."""
        trace = self.trace
        return float(self.num_steps) if trace.scenario.arrival_unit is ArrivalUnit.STEPS else trace.duration_s

    @property
    def phase(self) -> Phase:
        """The phase on show: all up to it have been revealed."""
        return PHASES[self._phase]

    @property
    def is_at_end(self) -> bool:
        """Whether the next step would be computed, not shown from history."""
        return self._cursor == len(self._ledger) - 1

    @property
    def has_more(self) -> bool:
        """Whether there is a step after the one on show."""
        return not self.is_at_end or self._started.run.has_work

    def facts(self, step: int | None = None) -> Facts:
        """Of a step, or of the one on show. Raises DebugError before the first step."""
        at = self._cursor if step is None else step
        if not 0 <= at < len(self._ledger):
            raise DebugError("no step has been made yet; `step` makes the first")
        return self._ledger[at]

    def before(self) -> Facts | None:
        """The facts of the step before the one on show."""
        return self._ledger[self._cursor - 1] if self._cursor > 0 else None

    def seen(self) -> Seen | None:
        """What the model showed in the step on show; None where no model runs."""
        found = self._started.seen
        return None if found is None or self._cursor < 0 else found[self._cursor]

    def end(self) -> None:
        """Lets go of the engine. What was seen can still be looked at."""
        self._started.end()

    def step(self) -> Facts:
        """The next step, whole. Raises DebugError if there is none."""
        if self.is_at_end:
            self._compute()
        self._cursor += 1
        self._phase = len(PHASES) - 1
        return self.facts()

    def step_into(self) -> Phase:
        """The next phase: of this step, or the first of the next one. A step is computed whole, then revealed."""
        if self._cursor >= 0 and self._phase < len(PHASES) - 1:
            self._phase += 1
        else:
            self.step()
            self._phase = 0
        return self.phase

    def back(self) -> Facts:
        """The step before. Raises DebugError at the first."""
        if self._cursor <= 0:
            raise DebugError("this is the first step" if self._cursor == 0 else "no step has been made yet")
        return self._show(self._cursor - 1)

    def goto(self, step: int) -> Facts:
        """Any step, made if need be. Raises DebugError if the run ends before it; then the last one is on show."""
        if step < 0:
            raise DebugError(f"step {step} is before the first, which is 0")
        while len(self._ledger) <= step:
            if not self._started.run.has_work:
                self._show(len(self._ledger) - 1)
                raise DebugError(f"the run has {len(self._ledger):,} steps; the last one is {len(self._ledger) - 1:,}")
            self._compute()
        return self._show(step)

    def next_event(self) -> Facts:
        """The next step in which something happens to a request. Raises DebugError if nothing does any more."""
        while self.has_more:
            if _has_event(self.step().snapshot):
                return self.facts()
        raise DebugError("nothing happens any more; this is the last step")

    def previous_event(self) -> Facts:
        """The last step before this one in which something happened to a request. Raises DebugError if there is none."""
        for step in range(self._cursor - 1, -1, -1):
            if _has_event(self._ledger[step].snapshot):
                return self._show(step)
        raise DebugError("nothing happened before this step")

    def run_until(
        self, breakpoints: Sequence[Breakpoint], max_steps: int = MAX_STEPS, *, backwards: bool = False
    ) -> Stop:
        """Goes on, or back, until one of them hits; the step on show does not count."""
        for _ in range(max_steps):
            if backwards and self._cursor <= 0:
                return Stop(self.shown, (), "this is the first step")
            if not backwards and not self.has_more:
                return Stop(self.shown, (), "the run is over")
            self.back() if backwards else self.step()
            hits = self.hits(breakpoints)
            if hits:
                return Stop(self.shown, hits, "; ".join(sentence for _, sentence in hits))
        return Stop(self.shown, (), f"{max_steps:,} steps were made and nothing hit")

    def hits(self, breakpoints: Sequence[Breakpoint]) -> tuple[tuple[Breakpoint, str], ...]:
        """Which of them hit in the step on show, each with its sentence."""
        before, now = self.before(), self.facts()
        found = [(one, one.hit(before, now)) for one in breakpoints]
        return tuple((one, sentence) for one, sentence in found if sentence is not None)

    def inject(self, asked: ScenarioRequest) -> TracedRequest:
        """A request more, from the next step on. Raises DebugError if steps lie ahead, ValueError if it will not do."""
        self._need_end("inject")
        traced, stop_token_ids = self._start.request(asked)
        self._do(Action(self._started.run.step_number, injected=(traced, stop_token_ids)))
        return traced

    def abort(self, request_id: str) -> None:
        """A user leaves before the next step. Raises DebugError if steps lie ahead or nobody has this id."""
        self._need_end("abort")
        if request_id not in {request.id for request in self.trace.scenario.requests}:
            raise DebugError(f"no request has the id {request_id!r}")
        self._do(Action(self._started.run.step_number, aborted=request_id))

    def fork(self, config: RunConfig) -> DebugSession:
        """The same past up to and with the step on show, then another configuration. This session stays as it is.

        Raises DebugError if the past did not come out the same, ValueError if the seated do not fit.
        """
        kept = self._cursor + 1
        most = max([config.num_slots, *(len(self._ledger[step].snapshot.slots) for step in range(kept))])
        forked = DebugSession(self._start, self._first_config, self._start.again(self._first_config, most))
        for action in self._actions:
            if action.step < kept or (action.step == kept and self.is_at_end):
                forked._replay(action.step, self._ledger)
                forked._do(action)
        forked._replay(kept, self._ledger)
        forked._do(Action(kept, config=config))
        forked._cursor = kept - 1
        return forked

    def _replay(self, num_steps: int, history: Ledger) -> None:
        """Makes steps until there are so many, each of which must be the one of the history."""
        while len(self._ledger) < num_steps:
            made = self._compute().snapshot
            if not is_same_step(made, history[made.step].snapshot):
                raise DebugError(f"the past could not be replayed: step {made.step} came out otherwise")

    def _do(self, action: Action) -> None:
        run = self._started.run
        if action.injected is not None:
            run.add(*action.injected)
        elif action.aborted is not None:
            run.abort(action.aborted)
        elif action.config is not None:
            run.reschedule(action.config)
        self._actions.append(action)

    def _need_end(self, what: str) -> None:
        if not self.is_at_end:
            last = len(self._ledger) - 1
            raise DebugError(
                f"only what lies ahead can be changed, and step {self._cursor:,} is not the last (that is {last:,}); "
                f"`goto {last}` and {what} there, or `fork` here first"
            )

    def _compute(self) -> Facts:
        if not self._started.run.has_work:
            raise DebugError("the run is over; `back` and `goto` show what there was")
        return self._ledger.append(self._started.run.step())

    def _show(self, step: int) -> Facts:
        self._cursor, self._phase = step, len(PHASES) - 1
        return self.facts()


def is_same_step(one: StepSnapshot, other: StepSnapshot) -> bool:
    """Whether two steps decided and sampled the same, whatever time and whatever dummy rows it took."""
    return _timeless(one) == _timeless(other)


def _timeless(snapshot: StepSnapshot) -> StepSnapshot:
    return snapshot._replace(start_s=0.0, schedule_s=0.0, forward_s=0.0, sample_s=0.0, num_dummy_rows=0)


def _has_event(snapshot: StepSnapshot) -> bool:
    happened = (snapshot.arrived, snapshot.rejected, snapshot.aborted, snapshot.admitted, snapshot.finished)
    return any(happened) or bool(snapshot.delivered)
