"""Traces -> one sentence for each step at which something happened, all runs contrasted.

Owns: what is said, when, and how much of it. Must not know: payloads, browsers, colours. The words are DESIGN.md's.
Three harms are told apart: a *slot held* (nobody may use it), an *answer withheld* (finished, its user does not have
it), a *slot-step wasted* (held or empty: no token came of it). What a trace does not hold yet is never claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from batchviz.pane_story import PaneStory
from batchviz.phrases import Part, Phrase, count, length, plain
from batchviz.scheduler import Policy
from batchviz.timeline import Timeline, pane_labels, read_timeline, request_order
from batchviz.trace import Trace

Clause = tuple[Phrase, bool]  # and whether it must be said
MAX_LENGTH = 300  # characters; optional clauses that would pass it are left out, and none is cut in the middle


class Sentence(NamedTuple):
    """What is told from `step` on, until the next sentence. `weight` 3 is a turn of the story, 1 a detail.

    A part is text, or a whole number: the index of a request, which is shown as its letter.
    """

    step: int
    weight: int
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        return plain(self.parts)


class Narration(NamedTuple):
    """`joint` contrasts the runs, step by step; `panes` tells each run alone (for runs that are not at the same step)."""

    joint: tuple[Sentence, ...]
    panes: tuple[tuple[Sentence, ...], ...]


def narrate(traces: Sequence[Trace]) -> list[Sentence]:
    """The story of these runs of one scenario, sparse, in the order of steps. At most one sentence a step."""
    return list(narration([read_timeline(trace) for trace in traces]).joint)


def narration(timelines: Sequence[Timeline]) -> Narration:
    """As `narrate`, for those who have read the timelines already."""
    order = {request_id: index for index, request_id in enumerate(request_order(timelines))}
    labels = pane_labels([timeline.trace for timeline in timelines])
    stories = [PaneStory(timeline, label, order) for timeline, label in zip(timelines, labels, strict=True)]
    steps = sorted({step for story in stories for step in story.steps})
    joint = [sentence for step in steps if (sentence := _joint(stories, step)) is not None]
    panes = tuple(
        tuple(
            Sentence(step, story.weight(step), _fit([(phrases[0], True), *((tail, False) for tail in phrases[1:])]))
            for step in story.steps
            if (phrases := story.tell(step))
        )
        for story in stories
    )
    return Narration(tuple(joint), panes)


def _joint(stories: Sequence[PaneStory], step: int) -> Sentence | None:
    if step == 0:
        return Sentence(0, 3, _opening(stories))
    if step == max(story.num_steps for story in stories) - 1 and all(story.is_complete for story in stories):
        return Sentence(step, 3, _closing(stories))
    weight = max(story.weight(step) for story in stories)
    clauses: list[Clause] = []
    shared = set.intersection(*(set(story.finished_at(step)) for story in stories))
    if shared:
        done = [index for index in stories[0].finished_at(step) if index in shared]
        clauses.append((stories[0].who_finished(done), True))
    topic = next((story.topic(step) for story in stories if story.topic(step)), [])
    for story in stories:
        phrases = story.tell(step, already_told=shared)
        if not phrases and len(stories) > 1 and topic:
            phrases = story.meanwhile(step, topic)
        if phrases:
            clauses.append(((f"{story.label}: ", *phrases[0]), True))
            clauses += [(tail, False) for tail in phrases[1:]]
    return Sentence(step, weight, _fit(clauses)) if clauses else None


def _opening(stories: Sequence[PaneStory]) -> tuple[Part, ...]:
    first = stories[0]
    if first.num_steps == 0:
        return ("Nothing has happened yet.",)
    same = len(stories) > 1 and all(
        story.admitted_at(0) == first.admitted_at(0) and story.queue_at(0) == first.queue_at(0)
        for story in stories
        if story.num_steps
    )
    if same or len(stories) == 1:
        subject = "Both" if len(stories) == 2 else "All" if len(stories) > 2 else first.label
        verb = "seat" if len(stories) > 1 else "seats"
        return _fit([(first.seating(f"{subject} {verb}"), True)])
    return _fit([(story.seating(f"{story.label} seats"), True) for story in stories if story.num_steps])


def _closing(stories: Sequence[PaneStory]) -> tuple[Part, ...]:
    """How it all ended, with the figures a listener takes home: steps, waits, slot-steps."""
    steps = " and ".join(f"{story.label.lower()} {count(story.num_steps, 'step')}" for story in stories)
    clauses: list[Clause] = [((f"The end. It took {steps}.",), True)]
    waits = [(story, story.mean_wait) for story in stories]
    told = [f"{_short(wait)} steps under {story.label.lower()}" for story, wait in waits if wait is not None]
    if told:
        clauses.append(((f"From arrival to delivery a user waited, on average, {' and '.join(told)}.",), True))
    held = [f"{story.num_held:,} of {story.num_slot_steps:,} under {story.label.lower()}" for story in stories]
    if any(story.num_held for story in stories):
        clauses.append(((f"Slot-steps held: {' and '.join(held)}.",), False))
    elif any(story.policy is Policy.SEQUENTIAL for story in stories):
        clauses.append((("No slot was held: a group of one waits for no member, only for its turn.",), False))
    return _fit(clauses)


def _short(number: float) -> str:
    """
    >>> _short(61.75), _short(260.0)
    ('61.75', '260')
    """
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def _fit(clauses: Sequence[Clause]) -> tuple[Part, ...]:
    """Joins what must be said, and of the rest, in its place, as much as fits; drops clauses rather than cutting one."""
    room = MAX_LENGTH - sum(length(phrase) + 1 for phrase, is_core in clauses if is_core)
    parts: list[Part] = []
    for phrase, is_core in clauses:
        if not is_core:
            if length(phrase) + 1 > room:
                continue
            room -= length(phrase) + 1
        parts += [" ", *phrase] if parts else phrase
    return _merge(parts)


def _merge(parts: Sequence[Part]) -> tuple[Part, ...]:
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged)
