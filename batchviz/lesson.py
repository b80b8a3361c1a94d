"""Lessons: Markdown with a front matter, bound to stops in recorded runs, read and checked whole.

Owns: Lesson, `read_lesson`, `list_lessons`; what is wrong, with file and line. Must not know: pages, players, HTML.
A number in a text is written `{static.num_steps}` and computed from the run; a question's right answer and every claim
are computed as well. What is false, missing or unknown is an error, so nothing that a lesson says can go stale.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from batchviz.figures import FigureError, evaluate, shown
from batchviz.lesson_runs import PLACES, LessonRuns
from batchviz.lesson_schema import LessonFields, QuestionFields, StopFields
from batchviz.lesson_source import SourceError, source_text
from batchviz.scenario import ScenarioError
from batchviz.scenario_schema import Path as KeyPath
from batchviz.scenario_schema import shown_path
from batchviz.scenario_text import Document, read_document

FOLDER = Path(__file__).resolve().parent.parent / "lessons"
PARTS = ("queue", "slots", "answers", "map", "counters")
FIGURE = re.compile(r"\{([^{}]+?)(?::([^{}:\"']*))?\}")
FURTHER = re.compile(r"^## Further reading\s*$", re.MULTILINE)


Made = TypeVar("Made")


class LessonError(ValueError):
    """A lesson that cannot be used. The message is one sentence that names file and line."""


@dataclass(frozen=True)
class Focus:
    """What the player is to point at: a pane (None: all), a part of it, a slot of that part."""

    pane: int | None = None
    part: str | None = None
    slot: int | None = None


@dataclass(frozen=True)
class Stop:
    """A step of what `runs` shows, and what is said there; Markdown, its figures filled in."""

    runs: LessonRuns
    step: int
    say: str
    focus: Focus
    note: str
    picture: str | None


@dataclass(frozen=True)
class Choice:
    text: str
    is_right: bool
    because: str


@dataclass(frozen=True)
class Question:
    """Asked before the stop of this place (from 0). Exactly one choice is right: computed from the runs."""

    before: int
    ask: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Option:
    label: str
    runs: LessonRuns


@dataclass(frozen=True)
class Try:
    say: str
    options: tuple[Option, ...]
    look_for: str
    has_calculator: bool


@dataclass(frozen=True)
class Lesson:
    """A lesson whose claims were found true."""

    id: str
    title: str
    minutes: int
    runs: LessonRuns
    intro: str
    further: str
    stops: tuple[Stop, ...]
    questions: tuple[Question, ...]
    try_it: Try
    read: tuple[tuple[str, str], ...]  # (where, source)
    claims: tuple[str, ...]


@cache
def list_lessons() -> tuple[Lesson, ...]:
    """The lessons that come with batchviz, in their order."""
    return tuple(read_lesson(path) for path in sorted(FOLDER.glob("[0-9]*.md")))


def read_lesson(path: Path) -> Lesson:
    """Reads and checks one. Raises LessonError."""
    name = path.name
    text = path.read_text(encoding="utf-8")
    if not text.startswith("---\n") or "\n---\n" not in text:
        raise LessonError(f"{name}, line 1: a lesson begins with its front matter, between two lines of three dashes")
    front, _, body = text[4:].partition("\n---\n")
    try:
        document = read_document(f"\n{front}\n".encode(), name, is_json=False)  # a line more: numbers are the file's
    except ScenarioError as error:
        raise LessonError(str(error)) from None
    return _Reader(document, body).lesson()


class _Reader:
    """One document, and the runs that its sentences are about."""

    def __init__(self, document: Document, body: str) -> None:
        self._document = document
        self._body = body
        try:
            self._fields = LessonFields.model_validate(document.data)
        except ValidationError as error:
            first = next((one for one in error.errors() if one["type"] != "missing"), error.errors()[0])
            path = tuple(first["loc"])
            raise self._error(path, f"{shown_path(path)}: {first['msg'].lower()}") from None
        self._runs = self._made(("scenario",), lambda: LessonRuns(self._fields.scenario, self._fields.policies))

    def lesson(self) -> Lesson:
        fields = self._fields
        for place, claim in enumerate(fields.claims):
            if self._value(("claims", place), claim, self._runs) is not True:
                raise self._error(("claims", place), f"this claim is not true of the runs: {claim}")
        intro, further = [*FURTHER.split(self._body, maxsplit=1), ""][:2]
        return Lesson(
            id=fields.id,
            title=fields.title,
            minutes=fields.minutes,
            runs=self._runs,
            intro=self._filled((), intro.strip(), self._runs),
            further=further.strip(),
            stops=self._stops(),
            questions=tuple(self._question(place, one) for place, one in enumerate(fields.questions)),
            try_it=self._try(),
            read=tuple(self._source(place, where) for place, where in enumerate(fields.read)),
            claims=tuple(fields.claims),
        )

    def _stops(self) -> tuple[Stop, ...]:
        runs, found = self._runs, []
        for place, stop in enumerate(self._fields.stops):
            here: KeyPath = ("stops", place)
            if stop.scenario is not None or stop.policies is not None:
                scenario, panes = stop.scenario or runs.scenario, stop.policies or list(runs.panes)
                runs = self._made(here, lambda scenario=scenario, panes=panes: LessonRuns(scenario, panes))  # type: ignore[misc]
            found.append(
                Stop(
                    runs=runs,
                    step=self._step((*here, "at"), stop, runs),
                    say=self._filled((*here, "say"), stop.say, runs),
                    focus=self._made((*here, "focus"), lambda stop=stop, runs=runs: focus_of(stop.focus, runs)),  # type: ignore[misc]
                    note=self._filled((*here, "note"), stop.note, runs),
                    picture=stop.picture,
                )
            )
        return tuple(found)

    def _step(self, path: KeyPath, stop: StopFields, runs: LessonRuns) -> int:
        """The moment, in the pane that is named, else where it comes first."""
        moment, _, pane = stop.at.rpartition(" of ")
        try:
            if moment and runs.place_of(pane) is not None:
                steps = [runs.run(pane, None).moment(moment)]
            else:
                steps = [runs.run(name, None).moment(stop.at) for name in PLACES[: len(runs.panes)]]
        except ValueError as error:
            raise self._error(path, str(error)) from None
        found = [step for step in steps if step is not None]
        if not found:
            raise self._error(path, f"no run on show has the moment {stop.at!r}")
        return max(found) if stop.at == "end" else min(found)

    def _question(self, place: int, fields: QuestionFields) -> Question:
        here: KeyPath = ("questions", place)
        if fields.before > len(self._fields.stops):
            raise self._error(
                (*here, "before"), f"there are {len(self._fields.stops)} stops, and none is {fields.before}"
            )
        choices = []
        for number, choice in enumerate(fields.choices):
            path = (*here, "choices", number)
            is_right = bool(self._value((*path, "if"), choice.when, self._runs))
            text, because = (
                self._filled((*path, key), said, self._runs)
                for key, said in (("text", choice.text), ("because", choice.because))
            )
            choices.append(Choice(text, is_right, because))
        right = sum(choice.is_right for choice in choices)
        if right != 1:
            raise self._error(here, f"exactly one choice must be right, and by these runs {right} are")
        return Question(fields.before - 1, self._filled((*here, "ask"), fields.ask, self._runs), tuple(choices))

    def _try(self) -> Try:
        fields = self._fields.try_
        scenario = fields.scenario or self._runs.scenario
        options = tuple(
            Option(one.label, self._made(("try", "options", place), lambda one=one: LessonRuns(scenario, one.policies)))  # type: ignore[misc]
            for place, one in enumerate(fields.options)
        )
        say = self._filled(("try", "say"), fields.say, self._runs)
        look_for = self._filled(("try", "look_for"), fields.look_for, self._runs)
        return Try(say, options, look_for, fields.calculator)

    def _source(self, place: int, where: str) -> tuple[str, str]:
        try:
            return where, source_text(where)
        except SourceError as error:
            raise self._error(("read", place), str(error)) from None

    def _filled(self, path: KeyPath, text: str, runs: LessonRuns) -> str:
        """The text with its figures."""

        def figure(found: re.Match[str]) -> str:
            value = self._value(path, found[1], runs)
            try:
                return shown(value, found[2] or "")
            except ValueError:
                raise self._error(path, f"{found[2]!r} is no format for {value!r}") from None

        return FIGURE.sub(figure, text)

    def _value(self, path: KeyPath, sentence: str, runs: LessonRuns) -> float | int | bool:
        return self._made(path, lambda: evaluate(sentence, runs))

    def _made(self, path: KeyPath, make: Callable[[], Made]) -> Made:
        try:
            return make()
        except (FigureError, ScenarioError) as error:
            raise self._error(path, str(error)) from None

    def _error(self, path: KeyPath, problem: str) -> LessonError:
        return LessonError(str(self._document.error(path, problem)))


def focus_of(text: str, runs: LessonRuns) -> Focus:
    """`static slot 0`, `continuous queue`, `answers`, `second`, or nothing. Raises FigureError."""
    words = text.split()
    pane = runs.place_of(words[0]) if words else None
    rest = words if pane is None else words[1:]
    match rest:
        case []:
            return Focus(pane)
        case ["slot", number] if number.isdecimal():
            return Focus(pane, "slots", int(number))
        case [part] if part in PARTS:
            return Focus(pane, part)
    parts = ", ".join(PARTS)
    raise FigureError(
        f"focus {text!r} is nothing to point at; write a pane, one of {parts}, slot N, or a pane and one of them"
    )
