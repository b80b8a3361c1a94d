"""The workshop's answer key says what the runs say; agendas add up; what it tells people to type is there."""

from __future__ import annotations

import re

import pytest

from batchviz.cli import app
from batchviz.figures import evaluate
from batchviz.lesson import FOLDER, list_lessons
from batchviz.lesson_runs import LessonRuns

TEXT = (FOLDER / "WORKSHOP.md").read_text(encoding="utf-8")
KEY = TEXT.split("## Answer key")[1].split("\n## ")[0]
CLAIMS = re.findall(r"<!-- (.+?) -->", TEXT)
RUNS = LessonRuns("four-slots", ("static", "continuous"))


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_runs_say_what_the_workshop_says(claim: str) -> None:
    assert evaluate(claim, RUNS) is True


def test_every_answer_has_a_claim_and_every_number_of_an_answer_stands_in_one() -> None:
    answers = re.split(r"^\d+\. ", KEY, flags=re.MULTILINE)[1:]
    exercises = re.findall(r"^\d+\. ", TEXT.split("## Exercises")[1].split("## Answer key")[0], flags=re.MULTILINE)
    assert len(answers) == len(exercises) == 9
    for answer in answers:
        claims = " ".join(re.findall(r"<!-- (.+?) -->", answer))
        assert claims, answer
        said = re.findall(r"\b\d{2,}\b", re.sub(r"<!-- .+? -->|`[^`]*`", "", answer))
        assert [number for number in said if not re.search(rf"\b{number}\b|_b?{number}\b", claims)] == []


@pytest.mark.parametrize(("minutes", "heading"), [(45, "## 45 minutes"), (90, "## 90 minutes")])
def test_an_agenda_goes_forward_and_ends_in_time(minutes: int, heading: str) -> None:
    table = TEXT.split(heading)[1].split("\n## ")[0]
    starts = [int(minute) for minute in re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE)]
    assert starts == sorted(set(starts))
    assert starts[0] == 0
    assert minutes - 5 <= starts[-1] < minutes


def test_lessons_are_called_by_their_titles_and_commands_exist() -> None:
    titles = {number: lesson.title for number, lesson in enumerate(list_lessons(), start=1)}
    for number, title in re.findall(r"Lesson (\d), \*([^*]+)\*", TEXT):
        assert titles[int(number)] == title
    commands = {command.name or (command.callback and command.callback.__name__) for command in app.registered_commands}
    for name in re.findall(r"python -m batchviz ([a-z]+)", TEXT):
        assert name in commands
    makefile = (FOLDER.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z]+)", TEXT):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
