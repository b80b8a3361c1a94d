"""Traces -> the player's one payload: JSON-ready columns that grow with tokens and not with slots × steps.

Owns: `playback()` and the layout of what it returns ("batchviz-playback/1"). Must not know: browsers, files, widgets,
colours (a request has a colour *index*). The reader of this layout is assets/player/model.js.

Layout. Requests are whole numbers: their place in the scenario. Steps count from 0; None is "not in this trace".

    schema, version, live, run_id, content, name, title, look_for, poster_step
    requests   {letter, colour, id, prompt, num_prompt_tokens, max_tokens, arrival}: a list each
    panes      [{policy, label, subtitle, num_slots, num_steps, status, message, seconds, tokens_from, prefill,
                 start_s: num_steps + 1 times, the last one is the end,
                 rows: {arrived, admitted, slot, first, finished, delivered, aborted, rejected, reason, why},
                 spans: {slot, request, phase, first, last}, tokens: [{runs: [step, count, ...], pieces | null}],
                 reading: [[request, [step, ...], [prompt tokens read by its end, ...]], ...] of prompts read in pieces,
                 long_steps: [[step, seconds, times the usual], ...],
                 arrival_order, head_reasons: {step, reason}, events: [[step, kind, request], ...]}]
    narration  {joint: [[step, weight, parts], ...], panes: [the same, for each pane alone]}
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from batchviz.narrate import Sentence, narration
from batchviz.scheduler import Policy
from batchviz.timeline import Life, Timeline, letter, pane_labels, read_timeline, request_order, shorten
from batchviz.trace import RunnerKind, SlotPhase, Trace, TracedRequest

SCHEMA = "batchviz-playback/1"
NUM_COLOURS = 10
PHASES: Mapping[SlotPhase, int] = MappingProxyType(
    {SlotPhase.PREFILL: 1, SlotPhase.DECODE: 2, SlotPhase.HELD: 3, SlotPhase.STALLED: 4}
)
SUBTITLES: Mapping[Policy, str] = MappingProxyType(
    {
        Policy.SEQUENTIAL: "One request at a time.",
        Policy.STATIC: "A fixed group starts and ends together.",
        Policy.CONTINUOUS: "A freed slot is refilled before the next step.",
    }
)
ROW_KEYS = (
    "arrived", "admitted", "slot", "first_token", "finished", "delivered", "aborted", "rejected", "reason", "why",
)  # fmt: skip
EVENT_KINDS = ("arrived", "rejected", "aborted", "admitted", "finished", "delivered")
MAX_PROMPT = 160  # characters of a prompt that travel to the browser


def playback(
    traces: Sequence[Trace], *, version: int = 0, live: bool = False, run_id: str | None = None
) -> dict[str, Any]:
    """The payload of these runs of one scenario, one pane each, in this order.

    `run_id` says whether the cursor keeps its place: by default it is a hash of what stays the same while a run grows or
    is scheduled anew: the scenario, where its first trace comes from. `content` says whether anything has changed.
    """
    timelines = [read_timeline(trace) for trace in traces]
    ids = request_order(timelines)
    order = {request_id: index for index, request_id in enumerate(ids)}
    story = narration(timelines) if timelines else None
    scenario = traces[0].scenario if traces else None
    return {
        "schema": SCHEMA,
        "version": version,
        "live": live,
        "run_id": _run_id(traces) if run_id is None else run_id,
        "content": _content(traces, version, live),
        "name": scenario.name if scenario else "",
        "title": scenario.title if scenario else "",
        "look_for": scenario.look_for if scenario else "",
        "poster_step": _poster_step(timelines),
        "requests": _requests(traces, ids),
        "panes": [
            _pane(timeline, label, ids, order) for timeline, label in zip(timelines, pane_labels(traces), strict=True)
        ],
        "narration": {
            "joint": [_sentence(sentence) for sentence in story.joint] if story else [],
            "panes": [[_sentence(sentence) for sentence in pane] for pane in story.panes] if story else [],
        },
    }


def _run_id(traces: Sequence[Trace]) -> str:
    if not traces:
        return _digest([])
    scenario, origin = traces[0].scenario, traces[0].origin
    requests = [
        [request.id, request.arrival, request.prompt, request.num_prompt_tokens] for request in scenario.requests
    ]
    return _digest([scenario.name, requests, origin.runner, origin.date])


def _content(traces: Sequence[Trace], version: int, live: bool) -> str:
    runs = [
        [
            *dataclasses.astuple(trace.config),
            *(trace.status, len(trace.steps)),
            *(trace.origin.runner, trace.origin.seconds, round(trace.duration_s, 6)),
        ]
        for trace in traces
    ]
    return _digest([version, live, runs])


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


def _sentence(sentence: Sentence) -> list[Any]:
    return [sentence.step, sentence.weight, list(sentence.parts)]


def _requests(traces: Sequence[Trace], ids: Sequence[str]) -> dict[str, list[Any]]:
    known: dict[str, TracedRequest] = {}
    for trace in traces:
        for request in trace.scenario.requests:
            known.setdefault(request.id, request)
    found = [known.get(request_id) for request_id in ids]
    return {
        "letter": [letter(index) for index in range(len(ids))],
        "colour": [index % NUM_COLOURS for index in range(len(ids))],
        "id": list(ids),
        "prompt": [shorten(request.prompt, MAX_PROMPT) if request and request.prompt else None for request in found],
        "num_prompt_tokens": [request.num_prompt_tokens if request else None for request in found],
        "max_tokens": [request.max_output_tokens if request else None for request in found],
        "arrival": [request.arrival if request else None for request in found],
    }


def _pane(timeline: Timeline, label: str, ids: Sequence[str], order: Mapping[str, int]) -> dict[str, Any]:
    trace = timeline.trace
    prefill = trace.config.prefill.value
    lives = [timeline.lives.get(request_id) or Life() for request_id in ids]
    return {
        "policy": trace.config.policy.value,
        "label": label,
        "subtitle": SUBTITLES[trace.config.policy]
        + ("" if prefill in ("mixed", *label.split()) else f" Prefill: {prefill}."),
        "num_slots": trace.num_slots,
        "num_steps": timeline.num_steps,
        "status": trace.status.value,
        "message": trace.message,
        "seconds": trace.origin.seconds.value,
        "tokens_from": trace.origin.runner.value,
        "prefill": prefill,
        "start_s": [round(step.start_s, 4) for step in trace.steps] + [round(trace.duration_s, 4)],
        "rows": {key: [getattr(life, key) for life in lives] for key in ROW_KEYS},
        "spans": {
            "slot": [span.slot for span in timeline.spans],
            "request": [order[span.request_id] for span in timeline.spans],
            "phase": [PHASES[span.phase] for span in timeline.spans],
            "first": [span.first for span in timeline.spans],
            "last": [span.last for span in timeline.spans],
        },
        "tokens": [_tokens(life, trace.origin.runner) for life in lives],
        "reading": [
            [index, *map(list, zip(*life.read, strict=True))] for index, life in enumerate(lives) if len(life.read) > 1
        ],
        "long_steps": [
            [slow.step, round(slow.duration_s, 4), round(slow.times_usual, 1)] for slow in timeline.long_steps
        ],
        "arrival_order": [order[request_id] for request_id in timeline.arrival_order],
        "head_reasons": _head_reasons(trace),
        "events": [[event.step, EVENT_KINDS.index(event.kind), order[event.request_id]] for event in trace.events()],
    }


def _tokens(life: Life, runner: RunnerKind) -> dict[str, Any]:
    """Steps as runs of consecutive ones: a sequence that never stalls is one run, however long."""
    runs: list[int] = []
    for step in life.token_steps:
        if runs and step == runs[-2] + runs[-1]:
            runs[-1] += 1
        else:
            runs += [step, 1]
    has_text = runner is not RunnerKind.SCRIPTED and any(piece is not None for piece in life.pieces)
    return {"runs": runs, "pieces": [piece or "" for piece in life.pieces] if has_text else None}


def _head_reasons(trace: Trace) -> dict[str, list[Any]]:
    """Why the head of the queue waits, at each step where that changes. Those behind it wait behind the head."""
    steps: list[int] = []
    reasons: list[str | None] = []
    for snapshot in trace.steps:
        reason = snapshot.head_reason.value if snapshot.head_reason is not None else None
        if not reasons or reasons[-1] != reason:
            steps.append(snapshot.step)
            reasons.append(reason)
    return {"step": steps, "reason": reasons}


def _poster_step(timelines: Sequence[Timeline]) -> int:
    """The step that says most at a glance: the first at which most slots are held; else the middle of the longest run."""
    best_step, most_held = max((timeline.num_steps for timeline in timelines), default=0) // 2, 0
    for timeline in timelines:
        changes: dict[int, int] = {}
        for span in timeline.spans:
            if span.phase is SlotPhase.HELD:
                changes[span.first] = changes.get(span.first, 0) + 1
                changes[span.last + 1] = changes.get(span.last + 1, 0) - 1
        held = 0
        for step in sorted(changes):
            held += changes[step]
            if held > most_held:
                best_step, most_held = step, held
    return best_step
