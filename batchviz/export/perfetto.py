"""Traces as a timeline for ui.perfetto.dev: Chrome's trace event JSON.

Owns: that format. Must not know: pages, colours. A run is a process, a slot a thread; a stretch of a request in a slot is
a complete event, times are whole microseconds of the run's own seconds. The format: "Trace Event Format", Google, 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from batchviz import __version__
from batchviz.export.origin import clocks, origin_line
from batchviz.export.tables import run_label
from batchviz.kv_metrics import kv_steps
from batchviz.timeline import letter, read_timeline, request_order, shorten
from batchviz.trace import ArrivalUnit, Event, Trace

Entry = dict[str, Any]
QUEUE_COUNTER = "queue length"
KV_COUNTER = "KV tokens used"
MAX_PROMPT = 160  # characters
WHEN = MappingProxyType(  # at which end of its step an event lies; who is admitted can be seen in the slot
    {"arrived": "start", "rejected": "start", "aborted": "start", "finished": "end", "delivered": "end"}
)


def to_perfetto(traces: Sequence[Trace]) -> str:
    """The text of the file. `otherData` says which seconds these are, and where each run comes from."""
    timelines = [read_timeline(trace) for trace in traces]
    letters = {request_id: letter(place) for place, request_id in enumerate(request_order(timelines))}
    events = [event for pane, trace in enumerate(traces) for event in _events(pane, trace, letters)]
    runs = {run_label(pane, trace): origin_line(trace) for pane, trace in enumerate(traces)}
    about = {"made by": f"batchviz {__version__}", "clock": f"seconds, {clocks(traces)}", **runs}
    plain = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def step_times(trace: Trace) -> list[tuple[int, int]]:
    """Start and end of every step in microseconds; never backwards, whatever a stranger's trace says."""
    times: list[tuple[int, int]] = []
    now = 0
    for snapshot in trace.steps:
        start = max(now, round(snapshot.start_s * 1e6))
        now = max(start, round(snapshot.end_s * 1e6))
        times.append((start, now))
    return times


def _events(pane: int, trace: Trace, letters: dict[str, str]) -> Iterator[Entry]:
    pid, times = pane + 1, step_times(trace)
    users = trace.num_slots + 1  # the thread below the slots, for what happens to requests
    yield from _names(pid, trace, run_label(pane, trace), users)
    prompts = {request.id: request.prompt for request in trace.scenario.requests}
    for span in read_timeline(trace).spans:
        prompt = prompts.get(span.request_id)
        yield {
            "name": f"{letters[span.request_id]} {span.phase}",
            "cat": str(span.phase),
            "ph": "X",
            "ts": times[span.first][0],
            "dur": times[span.last][1] - times[span.first][0],
            "pid": pid,
            "tid": span.slot + 1,
            "args": {"request": span.request_id, "first step": span.first, "last step": span.last}
            | ({"prompt": shorten(prompt, MAX_PROMPT)} if prompt else {}),
        }
    arrivals = {request.id: request.arrival for request in trace.scenario.requests}
    in_seconds = trace.scenario.arrival_unit is ArrivalUnit.SECONDS
    for event in trace.events():
        if event.kind in WHEN:
            yield {
                "name": f"{letters[event.request_id]} {event.kind}",
                "cat": event.kind,
                "ph": "i",
                "s": "t",
                "ts": _arrival_us(arrivals, event) if in_seconds and event.kind == "arrived" else _time(times, event),
                "pid": pid,
                "tid": users,
                "args": {"request": event.request_id, "step": event.step},
            }
    yield from _counters(pid, trace, times)


def _time(times: Sequence[tuple[int, int]], event: Event) -> int:
    start, end = times[event.step]
    return start if WHEN[event.kind] == "start" else end


def _arrival_us(arrivals: dict[str, float], event: Event) -> int:
    return max(0, round(arrivals[event.request_id] * 1e6))


def _names(pid: int, trace: Trace, label: str, users: int) -> Iterator[Entry]:
    def named(kind: str, tid: int, **args: Any) -> Entry:
        return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": args}

    yield named("process_name", 0, name=f"{label} (seconds {trace.origin.seconds})")
    yield named("process_sort_index", 0, sort_index=pid)
    for tid in range(1, users + 1):
        yield named("thread_name", tid, name="requests" if tid == users else f"slot {tid - 1}")
        yield named("thread_sort_index", tid, sort_index=tid)


def _counters(pid: int, trace: Trace, times: Sequence[tuple[int, int]]) -> Iterator[Entry]:
    """One value a step, from its start on: who waited in it, and the KV positions filled by its end; then 0."""
    for name, series, values in (
        (QUEUE_COUNTER, "requests", [snapshot.num_waiting for snapshot in trace.steps]),
        (KV_COUNTER, "tokens", [step.used for step in kv_steps(trace)]),
    ):
        told = [(start, value) for (start, _), value in zip(times, values, strict=True)]
        ends = [(end, 0) for (_, end), (start, _) in pairwise(times) if start > end]  # nobody is there in between
        ends += [(times[-1][1], 0)] if times else []
        for at, value in sorted([*told, *ends], key=lambda pair: pair[0]):
            yield {"name": name, "ph": "C", "ts": at, "pid": pid, "tid": 0, "args": {series: value}}
