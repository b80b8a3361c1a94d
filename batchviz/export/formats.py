"""The files that a trace can become, each by the end of its name.

Owns: the list of them, what each may be told, how many runs it has room for. Must not know: how any of them is made,
terminals, pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from batchviz.export.csv_files import requests_csv, steps_csv
from batchviz.export.html import to_html
from batchviz.export.images import to_gif, to_png
from batchviz.export.markdown import to_markdown
from batchviz.export.perfetto import to_perfetto
from batchviz.link import MAX_PANES
from batchviz.trace import Trace

Maker = Callable[[Sequence[Trace], int | None, bool | None], bytes]


class FormatError(ValueError):
    """Runs or wishes that a format has no room for. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file. `make` takes the runs, a step and whether to play, and heeds what the format knows of."""

    key: str  # what the page calls it by
    label: str
    suffix: str
    mime: str
    make: Maker
    takes_step: bool = False
    takes_play: bool = False
    is_drawn: bool = False  # panes side by side: no more than MAX_PANES

    def bytes_of(self, traces: Sequence[Trace], step: int | None = None, play: bool | None = None) -> bytes:
        """The file. Raises FormatError where the runs do not fit; a step beyond their end counts as the last."""
        last = max((len(trace.steps) for trace in traces), default=0) - 1
        if last < 0:
            raise FormatError("there is not a single step in these runs; there is nothing to export")
        if self.is_drawn and len(traces) > MAX_PANES:
            raise FormatError(f"there are {len(traces)} runs; {self.suffix} shows at most {MAX_PANES} side by side")
        return self.make(traces, None if step is None else min(step, last), play)


def _spreadsheet(text: str) -> bytes:
    """With a mark that tells spreadsheets that it is UTF-8."""
    return text.encode("utf-8-sig")


def _png(traces: Sequence[Trace], step: int | None, play: bool | None) -> bytes:
    return to_png(traces, max(len(trace.steps) for trace in traces) - 1 if step is None else step)


def _html(traces: Sequence[Trace], step: int | None, play: bool | None) -> bytes:
    return to_html(traces, step=step, play=play).encode()


FORMATS = (
    Format("page", "Web page (HTML)", ".html", "text/html", _html, True, True, is_drawn=True),
    Format("picture", "Picture (PNG)", ".png", "image/png", _png, True, is_drawn=True),
    Format("animation", "Animation (GIF)", ".gif", "image/gif", lambda traces, *_: to_gif(traces), is_drawn=True),
    Format(
        "perfetto", "Timeline (Perfetto)", ".perfetto.json", "application/json",
        lambda traces, *_: to_perfetto(traces).encode(),
    ),
    Format("table", "Table (Markdown)", ".md", "text/markdown", lambda traces, *_: to_markdown(traces).encode()),
    Format("request", "Requests (CSV)", ".requests.csv", "text/csv", lambda traces, *_: _spreadsheet(requests_csv(traces))),
    Format("step", "Steps (CSV)", ".steps.csv", "text/csv", lambda traces, *_: _spreadsheet(steps_csv(traces))),
)  # fmt: skip


def format_of(file_name: str) -> Format:
    """By the end of the name, however it is cased. Raises FormatError."""
    for known in FORMATS:
        if file_name.lower().endswith(known.suffix):
            return known
    raise FormatError(f"it must end in one of {', '.join(known.suffix for known in FORMATS)}")
