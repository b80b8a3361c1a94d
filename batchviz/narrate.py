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

MAX_LENGTH = 300  # characters; what does not fit is left out, clause by clause, never cut in the middle


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
            Sentence(step, story.weight(step), _fit([phrases[0]], phrases[1:]))
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
    lead: list[Phrase] = []
    shared = set.intersection(*(set(story.finished_at(step)) for story in stories))
    if shared:
        lead.append(stories[0].who_finished([index for index in stories[0].finished_at(step) if index in shared]))
    cores: list[Phrase] = []
    tails: list[Phrase] = []
    topic = next((story.topic(step) for story in stories if story.topic(step)), [])
    for story in stories:
        phrases = story.tell(step, already_told=shared)
        if not phrases and len(stories) > 1 and topic:
            phrases = story.meanwhile(step, topic)
        if phrases:
            cores.append((f"{story.label}: ", *phrases[0]))
            tails += phrases[1:]
    if not lead and not cores:
        return None
    return Sentence(step, weight, _fit(lead + cores, tails))


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
        return _fit([first.seating(f"{subject} {verb}")], [])
    return _fit([story.seating(f"{story.label} seats") for story in stories if story.num_steps], [])


def _closing(stories: Sequence[PaneStory]) -> tuple[Part, ...]:
    """How it all ended, with the figures a listener takes home: steps, waits, slot-steps."""
    steps = " and ".join(f"{story.label.lower()} {count(story.num_steps, 'step')}" for story in stories)
    cores: list[Phrase] = [(f"The end. It took {steps}.",)]
    waits = [(story, story.mean_wait) for story in stories]
    told = [f"{_short(wait)} steps under {story.label.lower()}" for story, wait in waits if wait is not None]
    if told:
        cores.append((f"From arrival to delivery a user waited, on average, {' and '.join(told)}.",))
    held = [f"{story.num_held:,} of {story.num_slot_steps:,} under {story.label.lower()}" for story in stories]
    tail: Phrase = (f"Slot-steps held: {' and '.join(held)}.",)
    if any(story.num_held for story in stories):
        return _fit(cores, [tail])
    if any(story.policy is Policy.SEQUENTIAL for story in stories):
        tail = ("No slot was held: a group of one never waits for its members, only for its turn.",)
        return _fit(cores, [tail])
    return _fit(cores, [])


def _short(number: float) -> str:
    """
    >>> _short(61.75), _short(260.0)
    ('61.75', '260')
    """
    return f"{number:,.2f}".rstrip("0").rstrip(".")


def _fit(cores: Sequence[Phrase], tails: Sequence[Phrase]) -> tuple[Part, ...]:
    """Joins the cores, and as many of the tails as fit; drops whole phrases rather than cutting one."""
    kept: list[Phrase] = []
    for phrase in (*cores, *tails):
        if not kept or sum(length(other) + 1 for other in kept) + length(phrase) <= MAX_LENGTH:
            kept.append(phrase)
    parts: list[Part] = []
    for phrase in kept:
        if parts:
            parts.append(" ")
        parts.extend(phrase)
    return _merge(parts)


def _merge(parts: Sequence[Part]) -> tuple[Part, ...]:
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged)
