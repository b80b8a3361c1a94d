"""Where a run's words and numbers come from, in one line, for whatever leaves the page.

Owns: that line. Must not know: formats; each escapes it as it must, since it may come from a stranger's file.
"""

from __future__ import annotations

from collections.abc import Sequence

from batchviz.export.text import PROVENANCE
from batchviz.timeline import shorten
from batchviz.trace import Trace

MAX_ORIGIN = 300  # characters


def origin_line(trace: Trace) -> str:
    """Example: tokens recorded from the model, 2026-11-30, on AMD EPYC, SmolLM2, float32; steps counted, seconds measured."""
    origin = trace.origin
    words = PROVENANCE[origin.runner].removesuffix(", now")
    parts = [words, origin.date[:10], f"on {origin.machine}" if origin.machine else ""]
    if origin.model is not None:
        parts += [origin.model.name, origin.model.dtype]
    line = ", ".join(part for part in parts if part)
    return shorten(f"{line}; steps counted, seconds {origin.seconds}", MAX_ORIGIN)


def origin_lines(traces: Sequence[Trace]) -> list[str]:
    """Each line once, in the order of the runs; of runs that were recorded together there is one."""
    return list(dict.fromkeys(origin_line(trace) for trace in traces))


def clocks(traces: Sequence[Trace]) -> str:
    """What kind of seconds these runs have: "measured", "modelled", or both with a stroke between."""
    return " / ".join(sorted({str(trace.origin.seconds) for trace in traces}))
