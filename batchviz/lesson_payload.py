"""Lessons -> what the browser shows of them: cards, runs for the player, pictures; plain data ("batchviz-lesson/1").

Owns: the order of the cards and the layout of the data. Must not know: HTML, Streamlit. Its reader is assets/lesson/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from batchviz.lesson import Lesson, Question, Stop
from batchviz.lesson_runs import LessonRuns, config_from_name, run_of
from batchviz.link import View, view_to_params
from batchviz.markdown_blocks import blocks
from batchviz.panes import pane_of
from batchviz.playback import playback
from batchviz.step_picture import picture

SCHEMA = "batchviz-lesson/1"
Card = dict[str, Any]


def index_payload(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """The list of lessons."""
    return {"schema": SCHEMA, "lessons": [_named(lesson) | {"about": blocks(lesson.intro)[:1]} for lesson in lessons]}


def lesson_payload(lessons: Sequence[Lesson], place: int) -> dict[str, Any]:
    """One lesson, with its neighbours' names."""
    lesson = lessons[place]
    runs: dict[str, Any] = {}
    cards = _cards(lesson, runs)
    return {
        "schema": SCHEMA,
        **_named(lesson),
        "number": place + 1,
        "count": len(lessons),
        "previous": _named(lessons[place - 1]) if place else None,
        "next": _named(lessons[place + 1]) if place + 1 < len(lessons) else None,
        "cards": cards,
        "runs": runs,
    }


def _named(lesson: Lesson) -> dict[str, Any]:
    return {"id": lesson.id, "title": lesson.title, "minutes": lesson.minutes}


def _cards(lesson: Lesson, runs: dict[str, Any]) -> list[Card]:
    first = lesson.stops[0]
    cards: list[Card] = [{"kind": "intro", "blocks": blocks(lesson.intro), "run": _run(runs, first.runs), "step": 0}]
    for place, stop in enumerate(lesson.stops):
        cards += [_question(question) for question in lesson.questions if question.before == place]
        cards.append(_stop(runs, stop, place))
    options = [
        {
            "label": option.label,
            "run": _run(runs, option.runs),
            "link": _link(option.runs),
            "rates": [run_of(option.runs.scenario, pane).metrics.throughput_tok_s for pane in option.runs.panes],
        }
        for option in lesson.try_it.options
    ]
    cards.append(
        {
            "kind": "try",
            "blocks": blocks(lesson.try_it.say),
            "options": options,
            "look_for": blocks(lesson.try_it.look_for),
            "calculator": lesson.try_it.has_calculator,
        }
    )
    cards.append({"kind": "read", "sources": [{"where": where, "code": code} for where, code in lesson.read]})
    cards.append({"kind": "end", "blocks": blocks(lesson.further)})
    return cards


def _question(question: Question) -> Card:
    choices = [
        {"blocks": blocks(choice.text), "right": choice.is_right, "because": blocks(choice.because)}
        for choice in question.choices
    ]
    return {"kind": "question", "blocks": blocks(question.ask), "choices": choices}


def _stop(runs: dict[str, Any], stop: Stop, place: int) -> Card:
    card: Card = {
        "kind": "stop",
        "stop": place + 1,
        "blocks": blocks(stop.say),
        "run": _run(runs, stop.runs),
        "step": stop.step,
        "focus": {"pane": stop.focus.pane, "part": stop.focus.part, "slot": stop.focus.slot},
        "note": blocks(stop.note),
    }
    if stop.picture is not None:
        shown = run_of(stop.runs.scenario, stop.runs.panes[stop.focus.pane or 0])
        card["picture"] = picture(stop.picture, shown.trace, shown.ledger[stop.step])
    return card


def _run(runs: dict[str, Any], named: LessonRuns) -> str:
    key = f"{named.scenario} {','.join(named.panes)}"
    if key not in runs:
        runs[key] = playback(named.traces())
    return key


def _link(named: LessonRuns) -> str:
    """The query with which the page Compare shows the same."""
    panes = tuple(pane_of(config_from_name(named.scenario, name)) for name in named.panes)
    return urlencode(view_to_params(View(preset=named.scenario, panes=panes)) or {}, safe=",")
