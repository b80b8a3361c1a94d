"""Which steps of a run took unusually long, and what was read in them.

Owns: LongStep and what counts as long. Must not know: sentences, payloads, colours. Seconds are the trace's, measured
or modelled alike.
"""

from __future__ import annotations

import statistics
from typing import NamedTuple

from batchviz.trace import SlotPhase, Trace

LONG = 8.0  # times the usual step: a piece of 64 prompt tokens takes up to six times as long on two cores
ENOUGH_STEPS = 8  # with fewer there is no usual step yet


class LongStep(NamedTuple):
    """One step that took at least `LONG` times as long as the usual one."""

    step: int
    duration_s: float
    times_usual: float
    num_prompt_tokens: int  # read in it


def long_steps(trace: Trace) -> tuple[LongStep, ...]:
    """In the order of steps. The usual step is the median of those that computed anything."""
    working = [step.duration_s for step in trace.steps if step.num_rows > 0]
    if len(working) < ENOUGH_STEPS:
        return ()
    usual = statistics.median(working)
    return tuple(
        LongStep(
            snapshot.step,
            snapshot.duration_s,
            snapshot.duration_s / usual,
            sum(slot.num_tokens for slot in snapshot.slots if slot.phase is SlotPhase.PREFILL),
        )
        for snapshot in trace.steps
        if usual > 0 and snapshot.duration_s >= LONG * usual
    )
