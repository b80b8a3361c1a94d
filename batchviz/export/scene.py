"""One run at one step, as a picture of it needs to know it: who sits where, who waits, who has an answer, what was counted.

Owns: Scene, and the one pass over a run that answers for every step. Must not know: images, colours, fonts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batchviz.timeline import Timeline
from batchviz.trace import SlotPhase


@dataclass(frozen=True, slots=True)
class Seat:
    """A slot in this step. `request` is an index; None where nobody sits."""

    phase: SlotPhase
    request: int | None


@dataclass(frozen=True, slots=True)
class Scene:
    """A pane at a step. A step beyond the run's last one shows the last one, and `is_over`."""

    step: int
    is_over: bool
    seats: tuple[Seat, ...]
    waiting: tuple[int, ...]  # first come first
    withheld: tuple[int, ...]  # finished, and not delivered
    delivered: tuple[int, ...]  # in the order of delivery
    working: int  # slot-steps from the start on, and so on
    held: int
    stalled: int
    empty: int
    tokens: int
    seconds: float


class Story:
    """The scenes of one run. `order` gives every request its index."""

    def __init__(self, timeline: Timeline, order: dict[str, int]) -> None:
        self.timeline = timeline
        self.num_steps = timeline.num_steps
        self._order = order
        self._counts: list[tuple[int, int, int, int, int]] = []
        working = held = stalled = empty = tokens = 0
        for snapshot in timeline.trace.steps:
            for slot in snapshot.slots:
                working += slot.phase in (SlotPhase.PREFILL, SlotPhase.DECODE)
                held += slot.phase is SlotPhase.HELD
                stalled += slot.phase is SlotPhase.STALLED
                empty += slot.phase is SlotPhase.EMPTY
                tokens += slot.token_id is not None
            self._counts.append((working, held, stalled, empty, tokens))

    def at(self, step: int) -> Scene:
        """The scene of a step, from 0. The run has at least one."""
        own = max(0, min(step, self.num_steps - 1))
        snapshot = self.timeline.trace.steps[own]
        lives, order = self.timeline.lives, self._order
        delivered = [(life.delivered, order[key]) for key, life in lives.items() if _by(life.delivered, own)]
        withheld = [
            (life.finished, order[key])
            for key, life in lives.items()
            if _by(life.finished, own) and not _by(life.delivered, own) and not _by(life.aborted, own)
            and life.reason not in ("error", "rejected")
        ]  # fmt: skip
        waiting = [
            order[key]
            for key in self.timeline.arrival_order
            if _by(lives[key].arrived, own) and not _by(lives[key].admitted, own) and not _by(lives[key].aborted, own)
        ]
        working, held, stalled, empty, tokens = self._counts[own]
        return Scene(
            step=own,
            is_over=step >= self.num_steps,
            seats=tuple(
                Seat(slot.phase, None if slot.request_id is None else order[slot.request_id]) for slot in snapshot.slots
            ),
            waiting=tuple(waiting),
            withheld=_indices(withheld),
            delivered=_indices(delivered),
            working=working,
            held=held,
            stalled=stalled,
            empty=empty,
            tokens=tokens,
            seconds=snapshot.end_s,
        )


def _by(at: int | None, step: int) -> bool:
    return at is not None and at <= step


def _indices(found: Sequence[tuple[int | None, int]]) -> tuple[int, ...]:
    return tuple(index for at, index in sorted(found, key=lambda pair: (pair[0] or 0, pair[1])))
