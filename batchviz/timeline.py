"""A trace read lengthwise: what happened to each request, and who did what in each slot from when to when.

Owns: Life, Span, Timeline and the one pass over the snapshots that yields them; the letters that stand for requests.
Must not know: sentences, payloads, colours, files. Only what the trace holds is said; nothing is guessed ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from batchviz.pace import LongStep, long_steps
from batchviz.trace import SlotPhase, Trace, TraceStatus


class Span(NamedTuple):
    """One request doing one thing in one slot, from step `first` to step `last`, both included."""

    slot: int
    request_id: str
    phase: SlotPhase
    first: int
    last: int


@dataclass(slots=True)
class Life:
    """One request's way through a run. Every number is a step; None means that it has not happened in this trace."""

    arrived: int | None = None
    admitted: int | None = None
    slot: int | None = None
    first_token: int | None = None
    finished: int | None = None
    delivered: int | None = None
    aborted: int | None = None
    rejected: int | None = None
    why: str = ""  # the arithmetic of a rejection
    reason: str | None = None  # a FinishReason's value
    read: list[tuple[int, int]] = field(default_factory=list)  # (step of prefill, prompt tokens read by its end)
    token_steps: list[int] = field(default_factory=list)
    pieces: list[str | None] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The whole answer as its user would read it; empty where no model ran."""
        return "".join(piece for piece in self.pieces if piece)

    @property
    def last_step(self) -> int | None:
        """The step that ended it, however it ended."""
        return self.finished if self.finished is not None else self.aborted


@dataclass(frozen=True, slots=True)
class Timeline:
    """A trace's requests and spans. `lives` has every request of the scenario and every other one that was seen."""

    trace: Trace
    lives: Mapping[str, Life]
    spans: tuple[Span, ...]  # by slot, then by step
    arrival_order: tuple[str, ...]  # the order in which they joined the queue
    long_steps: tuple[LongStep, ...]

    @property
    def num_steps(self) -> int:
        return len(self.trace.steps)

    @property
    def is_complete(self) -> bool:
        return self.trace.status is TraceStatus.COMPLETE


def read_timeline(trace: Trace) -> Timeline:
    """One pass over the snapshots; cost grows with slots × steps, what comes out grows with tokens."""
    lives: dict[str, Life] = {request.id: Life() for request in trace.scenario.requests}
    arrival_order: list[str] = []
    open_spans: dict[int, Span] = {}
    spans: list[Span] = []

    def life(request_id: str) -> Life:
        return lives.setdefault(request_id, Life())

    for at, snapshot in enumerate(trace.steps):
        for request_id in snapshot.arrived:
            life(request_id).arrived = at
            arrival_order.append(request_id)
        for rejection in snapshot.rejected:
            gone = life(rejection.request_id)
            gone.rejected, gone.why, gone.reason = at, rejection.why, "rejected"
        for request_id in snapshot.aborted:
            gone = life(request_id)
            gone.aborted, gone.reason = at, gone.reason or "abort"
        for admission in snapshot.admitted:
            seated = life(admission.request_id)
            seated.admitted, seated.slot = at, admission.slot
        for index, slot in enumerate(snapshot.slots):
            span = open_spans.get(index)
            if span is not None and (span.request_id, span.phase) != (slot.request_id, slot.phase):
                spans.append(open_spans.pop(index)._replace(last=at - 1))
            if slot.request_id is None:
                continue
            if index not in open_spans:
                open_spans[index] = Span(index, slot.request_id, slot.phase, at, at)
            if slot.phase is SlotPhase.PREFILL:
                life(slot.request_id).read.append((at, slot.position + slot.num_tokens))
            if slot.token_id is not None:
                working = life(slot.request_id)
                working.first_token = at if working.first_token is None else working.first_token
                working.token_steps.append(at)
                working.pieces.append(slot.text)
        for finish in snapshot.finished:
            ended = life(finish.request_id)
            ended.finished, ended.reason = at, finish.reason.value
        for request_id in snapshot.delivered:
            life(request_id).delivered = at
    spans += [span._replace(last=len(trace.steps) - 1) for span in open_spans.values()]
    return Timeline(
        trace,
        lives,
        tuple(sorted(spans, key=lambda span: (span.slot, span.first))),
        tuple(arrival_order),
        long_steps(trace),
    )


def request_order(timelines: Sequence[Timeline]) -> list[str]:
    """Every request of every run, once, in the order of the scenario: the same request, the same letter everywhere."""
    return list(dict.fromkeys(request_id for timeline in timelines for request_id in timeline.lives))


def letter(index: int) -> str:
    """The letters of the requests: 0 is A, 25 is Z, 26 is AA.

    >>> [letter(index) for index in (0, 25, 26, 51, 52, 702)]
    ['A', 'Z', 'AA', 'AZ', 'BA', 'AAA']
    """
    letters = ""
    index += 1
    while index > 0:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def shorten(text: str, limit: int) -> str:
    """One line of at most `limit` characters; what was cut is marked by an ellipsis.

    >>> shorten("Is the sky\\n blue? Answer yes or no.", 20)
    'Is the sky blue? An…'
    """
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def pane_labels(traces: Sequence[Trace]) -> list[str]:
    """What to call each run beside the others: its policy, and of its settings those by which it differs from its like."""
    settings = [_settings(trace) for trace in traces]
    labels = []
    for trace, own in zip(traces, settings, strict=True):
        alike = [
            theirs for theirs, other in zip(settings, traces, strict=True) if other.config.name == trace.config.name
        ]
        telling = [words for place, words in enumerate(own) if any(theirs[place] != words for theirs in alike)]
        if len(alike) > 1 and not telling:
            telling = [own[0]]
        name = trace.config.name if trace.config.policy_class else trace.config.name.capitalize()
        labels.append(", ".join([name, *telling]))
    return [label if labels.count(label) == 1 else f"{label} ({place})" for place, label in enumerate(labels, start=1)]


def _settings(trace: Trace) -> tuple[str, ...]:
    """In words, the first the most telling."""
    config = trace.config
    pieces = "" if config.max_batched_tokens is None else f" by {config.max_batched_tokens}"
    kv = config.kv_budget_tokens
    return (
        "1 slot" if config.num_slots == 1 else f"{config.num_slots} slots",
        f"{config.prefill.value} prefill{pieces}",
        "no KV limit" if kv is None else f"{kv:,} KV tokens",
        f"time-out {config.group_timeout:g}" if config.group_timeout else "no time-out",
    )
