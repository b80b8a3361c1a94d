"""Traces as CSV: one file of requests, one of steps, for a spreadsheet.

Owns: both formats. Must not know: pages, charts. A cell that a spreadsheet would take for a formula gets an apostrophe
in front, since its text may come from a model or a stranger.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from batchviz.export.tables import Row, request_rows, run_label
from batchviz.trace import SlotPhase, Trace

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def requests_csv(traces: Sequence[Trace]) -> str:
    """One line for each request of each run: everything that is known of it."""
    return _csv(request_rows(traces))


def steps_csv(traces: Sequence[Trace]) -> str:
    """One line for each step of each run: what it took, what the slots did, who waited and why. Seconds, steps, rows."""
    return _csv(
        _step_row(run_label(pane, trace), trace, i)
        for pane, trace in enumerate(traces)
        for i in range(len(trace.steps))
    )


def _step_row(run: str, trace: Trace, index: int) -> Row:
    snapshot = trace.steps[index]
    phases = [slot.phase for slot in snapshot.slots]
    return {
        "run": run,
        "step": snapshot.step,
        "start_s": round(snapshot.start_s, 6),
        "duration_s": round(snapshot.duration_s, 6),
        "seconds": str(trace.origin.seconds),
        "rows": snapshot.num_rows,
        **{f"{phase}_slots": phases.count(phase) for phase in SlotPhase},
        "output_tokens": sum(slot.token_id is not None for slot in snapshot.slots),
        "waiting": snapshot.num_waiting,
        "head": snapshot.head,
        "head_reason": None if snapshot.head_reason is None else str(snapshot.head_reason),
        "admitted": " ".join(admission.request_id for admission in snapshot.admitted),
        "finished": " ".join(finish.request_id for finish in snapshot.finished),
        "delivered": " ".join(snapshot.delivered),
    }


def _csv(rows: Iterable[Row]) -> str:
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(out, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value
