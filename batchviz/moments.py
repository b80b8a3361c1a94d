"""Moments of a run by name: `first_finish`, `step 40`, `admitted capital`, `end`. What a lesson stops at.

Owns: `moment_step` and the names. Must not know: lessons, players, several runs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from batchviz.metrics import RequestResult
from batchviz.trace import SlotPhase, StepSnapshot, Trace

Happens = Callable[[StepSnapshot], bool]


def _in_phase(phase: SlotPhase) -> Happens:
    return lambda snapshot: any(slot.phase is phase for slot in snapshot.slots)


FIRST: Mapping[str, Happens] = MappingProxyType(
    {
        "first_admission": lambda snapshot: bool(snapshot.admitted),
        "first_finish": lambda snapshot: bool(snapshot.finished),
        "first_delivery": lambda snapshot: bool(snapshot.delivered),
        "first_held": _in_phase(SlotPhase.HELD),
        "first_stall": _in_phase(SlotPhase.STALLED),
        "first_decode": _in_phase(SlotPhase.DECODE),
    }
)
NAMES = ("start", "end", "first_refill", "longest_step", *FIRST)
OF_A_REQUEST = ("arrival", "admitted", "first_token", "finished", "delivered")


def moment_step(trace: Trace, results: Mapping[str, RequestResult], text: str) -> int | None:
    """The step of this moment, None if the run has none. Raises ValueError for what is no moment, with one sentence."""
    name, _, rest = text.partition(" ")
    if name == "step" and rest.isdecimal():
        return int(rest) if int(rest) < len(trace.steps) else None
    if name in OF_A_REQUEST and rest:
        if rest not in results:
            raise ValueError(f"no request is called {rest!r}; there are {', '.join(results)}")
        return request_step(results[rest], name)
    if rest or name not in NAMES:
        known = f"{', '.join(NAMES)}, step N, or {', '.join(OF_A_REQUEST)} with a request"
        raise ValueError(f"{text!r} is not a moment; it is one of {known}")
    return _named(trace, name)


def request_step(result: RequestResult, name: str) -> int | None:
    """One of OF_A_REQUEST."""
    step: int | None = getattr(result, f"{name}_step")
    return step


def _named(trace: Trace, name: str) -> int | None:
    if not trace.steps:
        return None
    if name == "start":
        return 0
    if name == "end":
        return len(trace.steps) - 1
    if name == "longest_step":
        return max(trace.steps, key=lambda snapshot: snapshot.duration_s).step
    if name == "first_refill":
        return _first_refill(trace)
    return next((snapshot.step for snapshot in trace.steps if FIRST[name](snapshot)), None)


def _first_refill(trace: Trace) -> int | None:
    """The first step in which a slot that somebody left has somebody else in it."""
    used: set[int] = set()
    for snapshot in trace.steps:
        for admission in snapshot.admitted:
            if admission.slot in used:
                return snapshot.step
            used.add(admission.slot)
    return None
