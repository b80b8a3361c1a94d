"""The real source of each phase of a step, never a copy.

Owns: which functions a phase is. Must not know: sessions, terminals, pages.
"""

from __future__ import annotations

import inspect
from types import MappingProxyType

from batchviz import engine, request, scheduler
from batchviz.debugger import Phase

SOURCES = MappingProxyType(
    {
        Phase.ADMIT: (
            scheduler.Scheduler.schedule,
            scheduler.ContinuousScheduler.why_not_admit,
            scheduler.StaticScheduler.why_not_admit,
        ),
        Phase.PACK: (scheduler._work,),
        Phase.FORWARD: (engine.Engine.step,),
        Phase.SAMPLE: (scheduler.Scheduler.update,),
        Phase.FINISH: (request.Sequence.append,),
        Phase.RELEASE: (
            scheduler.Scheduler.release,
            scheduler.ContinuousScheduler.may_release,
            scheduler.StaticScheduler.may_release,
        ),
    }
)


def source_of_phase(phase: Phase) -> str:
    """The functions of a phase, one after the other."""
    return "\n".join(inspect.getsource(function) for function in SOURCES[phase])
