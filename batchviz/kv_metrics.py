"""Trace -> KV memory: how many positions are used and how many are reserved, step by step.

Owns: KvStep, KvTotals. Must not know: engines, schedulers' own counts, pages, formats.
A seated sequence reserves its prompt and every token it may still produce, from its admission until its slot is
released (Orca's algorithm 1); used are the positions whose keys and values were computed. What lies between the two is
what a paged cache would give to others (Kwon et al., SOSP 2023).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from batchviz.trace import SlotPhase, Trace


class KvStep(NamedTuple):
    """KV positions at the end of one step's forward pass, over all slots."""

    used: int  # computed, finished answers that still hold their slot included
    held: int  # of those, the ones of finished answers: nobody will read them again
    reserved: int  # prompt + most output tokens of every seated sequence

    @property
    def unused(self) -> int:
        """Reserved, and nothing in it."""
        return self.reserved - self.used


class KvTotals(NamedTuple):
    """Position-steps: one KV position during one step, over a whole run."""

    used: int
    held: int
    reserved: int
    peak_used: int  # of one step
    peak_reserved: int

    @property
    def unused(self) -> int:
        return self.reserved - self.used

    @property
    def used_share(self) -> float | None:
        """Used over reserved, 0 to 1; None in a run that seated nobody."""
        return self.used / self.reserved if self.reserved else None


def kv_steps(trace: Trace) -> Iterator[KvStep]:
    """One KvStep a step, from the slots' snapshots alone."""
    reserves = {request.id: request.num_reserved_tokens for request in trace.scenario.requests}
    computed: dict[str, int] = {}
    for snapshot in trace.steps:
        used = held = reserved = 0
        for slot in snapshot.slots:
            request_id = slot.request_id
            if request_id is None:
                continue
            if slot.num_tokens:
                computed[request_id] = slot.position + slot.num_tokens
            positions = computed.get(request_id, 0)
            used += positions
            reserved += reserves[request_id]
            if slot.phase is SlotPhase.HELD:
                held += positions
        yield KvStep(used, held, reserved)


def kv_totals(trace: Trace, steps: Sequence[KvStep] | None = None) -> KvTotals:
    """The sums and peaks of a run; `steps` may be passed if they are at hand."""
    steps = tuple(kv_steps(trace)) if steps is None else steps
    return KvTotals(
        used=sum(step.used for step in steps),
        held=sum(step.held for step in steps),
        reserved=sum(step.reserved for step in steps),
        peak_used=max((step.used for step in steps), default=0),
        peak_reserved=max((step.reserved for step in steps), default=0),
    )
