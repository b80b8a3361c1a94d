"""What may stand in a lesson's front matter, key by key.

Owns: the fields and their limits. Must not know: files, lines, runs, what a moment or a figure is.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=2_000)]
Panes = Annotated[list[str], Field(min_length=1, max_length=3)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class StopFields(_Strict):
    """A moment of the run, and what is to be said there. `scenario` and `policies` change what is on show from here on."""

    at: Text
    say: Text
    focus: str = ""
    note: str = ""  # for whoever presents
    picture: Literal["batch", "mask", "padding", "kv"] | None = None  # of the step, beside the words
    scenario: str | None = None
    policies: Panes | None = None


class ChoiceFields(_Strict):
    """An answer. It is right if `if` is true of the runs; `because` is what is said to whoever chose it."""

    text: Text
    when: Text = Field(alias="if")
    because: Text


class QuestionFields(_Strict):
    """Asked before the stop of this number (from 1), so that it is a prediction."""

    before: Annotated[int, Field(ge=1)]
    ask: Text
    choices: Annotated[list[ChoiceFields], Field(min_length=2, max_length=5)]


class OptionFields(_Strict):
    """One position of the knob."""

    label: Text
    policies: Panes


class TryFields(_Strict):
    """A knob to turn, and what to look for."""

    say: Text
    options: Annotated[list[OptionFields], Field(min_length=2, max_length=6)]
    look_for: Text
    scenario: str | None = None
    calculator: bool = False  # beside it: what the options' throughput is worth


class LessonFields(_Strict):
    """The whole front matter."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]{3,60}$")]
    title: Text
    minutes: Annotated[int, Field(ge=1, le=30)]
    scenario: Text
    policies: Panes
    stops: Annotated[list[StopFields], Field(min_length=3, max_length=6)]
    questions: Annotated[list[QuestionFields], Field(min_length=1, max_length=2)]
    try_: TryFields = Field(alias="try")
    read: Annotated[list[str], Field(min_length=1, max_length=4)]
    claims: Annotated[list[str], Field(min_length=1, max_length=20)]
