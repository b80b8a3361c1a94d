"""What each chart shows, as data that a cache can hold: a table, its size, and the same in words.

Owns: `Drawing`s of a chart and the tables of figures, worked out once for each bundle of runs. Must not know: layout, widgets,
where the player rests. Tables are kept as the browser takes them: to turn rows into that is most of the work.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypedDict

import pyarrow as pa
import streamlit as st

from batchviz.export import series
from batchviz.export.tables import Row, gantt_rows, metric_rows, request_rows, run_label, wait_rows
from batchviz.trace import Trace
from batchviz.ui import charts, series_charts, state
from batchviz.ui.charts import table_of

MAX_BARS = 40  # requests that a bar each is drawn for
SPECS = MappingProxyType(  # and the columns that each of them names
    {
        "requests": (charts.gantt_spec, charts.GANTT_COLUMNS),
        "slots": (series_charts.phases_spec, series_charts.PHASE_COLUMNS),
        "queue": (series_charts.queue_spec, series_charts.QUEUE_COLUMNS),
        "tokens": (series_charts.tokens_spec, series_charts.TOKEN_COLUMNS),
        "kv-memory": (series_charts.kv_spec, series_charts.KV_COLUMNS),
        "share": (series_charts.share_spec, series_charts.SHARE_COLUMNS),
        "waits": (charts.waits_spec, charts.WAIT_COLUMNS),
    }
)
TABLES = MappingProxyType({"steps": series.step_rows, "metrics": metric_rows, "requests": request_rows})
Traces = tuple[Trace, ...]


class Drawing(TypedDict):
    """One chart to draw: `spec` is its key in `SPECS`, `label` is the run it is of, empty if it shows them all."""

    spec: str
    label: str
    rows: pa.Table
    height: int
    top: float  # how far its axis goes at least, so that charts side by side can be held against each other
    words: str


class Runs(TypedDict):
    """What the charts and figures of these runs have in common."""

    labels: list[str]
    longest: int  # steps of the longest run


@st.cache_data(max_entries=128, show_spinner=False)
def drawings(bundle: str, chart: str) -> list[Drawing]:
    """What is drawn for this chart, side by side."""
    return MAKERS[chart](state.traces_in(bundle))


@st.cache_data(max_entries=64, show_spinner=False)
def runs(bundle: str) -> Runs:
    traces = state.traces_in(bundle)
    return Runs(
        labels=[run_label(pane, trace) for pane, trace in enumerate(traces)],
        longest=max((len(trace.steps) for trace in traces), default=0),
    )


@st.cache_data(max_entries=128, show_spinner=False)
def table(bundle: str, of: str) -> pa.Table:
    """One of `TABLES`."""
    return table_of(TABLES[of](state.traces_in(bundle)))


def _drawing(spec: str, rows: list[Row], words: str, height: int, label: str = "", top: float = 0) -> Drawing:
    _, columns = SPECS[spec]
    return Drawing(spec=spec, label=label, rows=table_of(rows, columns), height=height, top=top, words=words)


def _per_pane(
    traces: Traces,
    spec: str,
    height: int,
    rows: Callable[[Traces, int], list[Row]],
    words: Callable[[Traces, int], str],
    top: float = 0,
) -> list[Drawing]:
    return [
        _drawing(spec, rows(traces, pane), words(traces, pane), height, run_label(pane, trace), top)
        for pane, trace in enumerate(traces)
    ]


def _requests(traces: Traces) -> list[Drawing]:
    height = 140 + 24 * max(len(traces[0].scenario.requests), 1)
    return _per_pane(traces, "requests", height, gantt_rows, series.requests_in_words)


def _slots(traces: Traces) -> list[Drawing]:
    return _per_pane(
        traces, "slots", 300, series.phase_rows, series.phases_in_words, max(trace.config.num_slots for trace in traces)
    )


def _kv(traces: Traces) -> list[Drawing]:
    top = max((bucket.kv_reserved for trace in traces for bucket in series.buckets(trace, 1)), default=0)
    return _per_pane(traces, "kv-memory", 300, series.kv_rows, series.kv_in_words, top)


def _queue(traces: Traces) -> list[Drawing]:
    return [_drawing("queue", series.queue_rows(traces), series.queue_in_words(traces), 300)]


def _tokens(traces: Traces) -> list[Drawing]:
    return [_drawing("tokens", series.token_rows(traces), series.tokens_in_words(traces), 300)]


def _waits(traces: Traces) -> list[Drawing]:
    num_requests = len(traces[0].scenario.requests)
    is_small = num_requests <= MAX_BARS
    height = 140 + 12 * (1 + len(traces)) * max(num_requests, 1) if is_small else 320
    found = [_drawing("share", series.share_rows(traces), series.waits_in_words(traces), height)]
    if is_small:
        bars = "Each user's wait, one bar a run; the numbers stand in the table of requests."
        found.append(_drawing("waits", wait_rows(traces), bars, height))
    return found


MAKERS = MappingProxyType(
    {
        "requests": _requests,
        "slots": _slots,
        "queue": _queue,
        "tokens": _tokens,
        "kv-memory": _kv,
        "waits": _waits,
    }
)
