"""Traces as a Markdown table, to be pasted into a report.

Owns: the table, and how a stranger's text is made plain in Markdown. Must not know: charts, pages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from batchviz.export.origin import origin_lines
from batchviz.export.tables import run_label
from batchviz.metrics import run_metrics
from batchviz.timeline import shorten
from batchviz.trace import Trace

MAX_TEXT = 300  # characters of a title or a sentence
SPECIAL = re.compile(r"([\\`*_{}\[\]()#|~$!])")
BEGINNING = re.compile(r"^([0-9]*)([-+=.])")  # of a list, or of a line across the page
ADDRESS = re.compile(r"(:)(?=//)|(?<=www)(\.)", re.IGNORECASE)  # what GitHub would make a link of


def to_markdown(traces: Sequence[Trace]) -> str:
    """A heading, one row a run, and a line that says where the numbers come from."""
    scenario = traces[0].scenario
    metrics = [run_metrics(trace) for trace in traces]
    has_stalled = any(metric.slot_steps.stalled for metric in metrics)
    columns = ("run", "steps", "seconds", "working", *(("stalled",) if has_stalled else ()), "held", "empty",
               "utilization", "mean TTFT", "mean E2E")  # fmt: skip
    rows = []
    for pane, (trace, metric) in enumerate(zip(traces, metrics, strict=True)):
        slots = metric.slot_steps
        rows.append(
            (
                plain(run_label(pane, trace)),
                f"{metric.num_steps:,}",
                f"{metric.duration_s:.2f} {trace.origin.seconds}",
                f"{slots.working:,}",
                *((f"{slots.stalled:,}",) if has_stalled else ()),
                f"{slots.held:,}",
                f"{slots.empty:,}",
                "–" if slots.utilization is None else f"{100 * slots.utilization:.1f} %",
                _both(metric.mean_ttft_steps, metric.mean_ttft_s),
                _both(metric.mean_e2e_steps, metric.mean_e2e_s),
            )
        )
    title, look_for = (plain(shorten(text, MAX_TEXT)) for text in (scenario.title, scenario.look_for))
    lines = [f"## {title or 'batchviz'}", "", *([look_for, ""] if look_for else []), _row(columns)]
    lines += [_row(("---", *["---:"] * (len(columns) - 1))), *map(_row, rows), ""]
    lines.append(
        "Working, held and empty are slot-steps; TTFT is the time to the first token, E2E until delivery, in steps (seconds)."
    )
    lines += [f"Origin: {plain(line)}." for line in origin_lines(traces)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Text from a stranger as Markdown that shows exactly it, in one line: no table cell, markup, link or HTML.

    >>> plain("a|b\\n<img src=x> *c*")
    'a\\\\|b &lt;img src=x&gt; \\\\*c\\\\*'
    """
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    escaped = ADDRESS.sub(lambda found: f"\\{found.group()}", SPECIAL.sub(r"\\\1", line))
    escaped = BEGINNING.sub(r"\1\\\2", escaped)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _both(steps: float | None, seconds: float | None) -> str:
    return "–" if steps is None else f"{steps:,.1f}" + ("" if seconds is None else f" ({seconds:.2f} s)")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
