"""What each chart shows, as plain data that a cache can hold: rows, size, and the same in words.

Owns: `Drawing`s of a chart and the rows of the tables, worked out once for each bundle of runs. Must not know: layout,
widgets, specs, where the player rests.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TypedDict

import streamlit as st

from batchviz.export import series
from batchviz.export.tables import Row, gantt_rows, metric_rows, request_rows, run_label, wait_rows
from batchviz.trace import Trace
from batchviz.trace_file import traces_from_json

MAX_BARS = 40  # requests that a bar each is drawn for
Traces = tuple[Trace, ...]


class Drawing(TypedDict):
    """One chart to draw: `spec` names it in figures.py, `label` is the run it is of, empty if it shows them all."""

    spec: str
    label: str
    rows: list[Row]
    height: int
    top: float  # how far its axis goes at least, so that charts side by side can be held against each other
    words: str


class Tables(TypedDict):
    """The tables under the charts, and what the charts have in common."""

    labels: list[str]
    longest: int  # steps of the longest run
    steps: list[Row]
    metrics: list[Row]
    requests: list[Row]


@st.cache_data(max_entries=128, show_spinner=False)
def drawings(bundle: str, chart: str) -> list[Drawing]:
    """What is drawn for this chart, side by side."""
    return MAKERS[chart](traces_from_json(bundle))


@st.cache_data(max_entries=64, show_spinner=False)
def tables(bundle: str) -> Tables:
    """What stands under every chart."""
    traces = traces_from_json(bundle)
    return Tables(
        labels=[run_label(pane, trace) for pane, trace in enumerate(traces)],
        longest=max((len(trace.steps) for trace in traces), default=0),
        steps=series.step_rows(traces),
        metrics=metric_rows(traces),
        requests=request_rows(traces),
    )


def _per_pane(
    traces: Traces,
    spec: str,
    height: int,
    rows: Callable[[Traces, int], list[Row]],
    words: Callable[[Traces, int], str],
    top: float = 0,
) -> list[Drawing]:
    return [
        Drawing(
            spec=spec,
            label=run_label(pane, trace),
            rows=rows(traces, pane),
            height=height,
            top=top,
            words=words(traces, pane),
        )
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
    rows, words = series.queue_rows(traces), series.queue_in_words(traces)
    return [Drawing(spec="queue", label="", rows=rows, height=300, top=0, words=words)]


def _tokens(traces: Traces) -> list[Drawing]:
    rows, words = series.token_rows(traces), series.tokens_in_words(traces)
    return [Drawing(spec="tokens", label="", rows=rows, height=300, top=0, words=words)]


def _waits(traces: Traces) -> list[Drawing]:
    num_requests = len(traces[0].scenario.requests)
    is_small = num_requests <= MAX_BARS
    height = 140 + 12 * (1 + len(traces)) * max(num_requests, 1) if is_small else 320
    rows, words = series.share_rows(traces), series.waits_in_words(traces)
    found = [Drawing(spec="share", label="", rows=rows, height=height, top=0, words=words)]
    if is_small:
        bars = "Each user's wait, one bar a run; the numbers stand in the table of requests."
        found.append(Drawing(spec="waits", label="", rows=wait_rows(traces), height=height, top=0, words=bars))
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
