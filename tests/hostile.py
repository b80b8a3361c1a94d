"""A trace every text of which wants to be something else: markup, a script, a link, a table cell, a formula."""

from __future__ import annotations

from dataclasses import replace

from batchviz.trace import ModelRecord, Trace, TraceStatus
from tests.story import story

HOSTILE = '</script><img src=x onerror="window.hit=1"><b>|[a](javascript:1)\n\u2028`x` *y* ${z} =1+1 &amp; \u202e'


def hostile_traces() -> list[Trace]:
    """Static beside continuous, not finished, on whatever machine a stranger wrote into the file."""
    ids = tuple(f"{HOSTILE}{number}" for number in range(3))
    traces = story(
        lengths=(4, 9, 5), num_slots=2, ids=ids, prompts=(HOSTILE,) * 3, pieces=((HOSTILE,) * 4, (HOSTILE,) * 9, (HOSTILE,) * 5)
    )  # fmt: skip
    model = ModelRecord(HOSTILE, HOSTILE, HOSTILE, note=HOSTILE, exact_note=HOSTILE)
    return [
        replace(
            trace,
            scenario=replace(trace.scenario, name=HOSTILE, title=HOSTILE, look_for=HOSTILE),
            config=replace(trace.config, policy_class=f"{HOSTILE}:{HOSTILE}"),
            origin=replace(trace.origin, machine=HOSTILE, date=HOSTILE, model=model, versions={HOSTILE: HOSTILE}),
            status=TraceStatus.ERROR,
            message=HOSTILE,
        )
        for trace in traces
    ]
