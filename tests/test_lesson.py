"""The lessons say what the runs say; a lesson that does not is refused with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchviz.figures import evaluate
from batchviz.lesson import FOLDER, Lesson, LessonError, list_lessons, read_lesson
from batchviz.lesson_source import SourceError, source_text
from batchviz.markdown_blocks import plain

FILES = sorted(FOLDER.glob("[0-9]*.md"))
GOOD = """---
id: good-one
title: Good
minutes: 5
scenario: four-slots
policies: [static, continuous]
stops:
  - {at: start, say: One.}
  - {at: first_refill of continuous, focus: continuous slot 0, say: "Step {continuous.first_refill}."}
  - {at: end, say: Three.}
questions:
  - before: 2
    ask: Which?
    choices:
      - {text: this, if: static.num_steps > continuous.num_steps, because: Yes.}
      - {text: that, if: static.num_steps < continuous.num_steps, because: No.}
try:
  say: Turn.
  options:
    - {label: two, policies: [static-2]}
    - {label: four, policies: [static]}
  look_for: This.
read: [scheduler.py StaticScheduler.may_release]
claims: [static.num_steps > continuous.num_steps]
---
Words, and {static.num_steps} steps.

## Further reading

- A paper.
"""


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def lesson(request: pytest.FixtureRequest) -> Lesson:
    return read_lesson(request.param)


def test_there_are_nine_in_their_order_with_names_of_their_own() -> None:
    lessons = list_lessons()
    assert len(lessons) == len(FILES) == 9
    assert len({lesson.id for lesson in lessons}) == 9
    assert [path.stem.partition("-")[2] for path in FILES] == [lesson.id for lesson in lessons]


def test_every_claim_is_true_and_every_question_has_one_right_answer(lesson: Lesson) -> None:
    for claim in lesson.claims:
        assert evaluate(claim, lesson.runs) is True, claim
    for question in lesson.questions:
        assert [choice.is_right for choice in question.choices].count(True) == 1
        assert all(plain(choice.because) for choice in question.choices)


def test_it_has_stops_within_their_runs_and_takes_five_to_ten_minutes(lesson: Lesson) -> None:
    assert 3 <= len(lesson.stops) <= 6
    assert 5 <= lesson.minutes <= 10
    for stop in lesson.stops:
        assert 0 <= stop.step < max(len(trace.steps) for trace in stop.runs.traces())
        assert len(plain(stop.say).split()) < 110, "a stop is read while a run stands still"
    assert plain(lesson.intro)
    assert plain(lesson.further)
    assert all(len(option.runs.panes) >= 1 for option in lesson.try_it.options)


def test_no_figure_is_left_unfilled(lesson: Lesson) -> None:
    texts = [lesson.intro, lesson.try_it.say, lesson.try_it.look_for]
    texts += [text for stop in lesson.stops for text in (stop.say, stop.note)]
    texts += [
        text for question in lesson.questions for choice in question.choices for text in (choice.text, choice.because)
    ]
    assert not [text for text in texts if re.search(r"[{}]", text)]


def test_what_is_shown_to_be_read_is_the_source_itself(lesson: Lesson) -> None:
    package = Path(__file__).parent.parent / "batchviz"
    for where, source in lesson.read:
        text = (package / where.split(" ")[0]).read_text(encoding="utf-8")
        assert all(line.strip() in text for line in source.splitlines())


def test_a_good_lesson_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_text(GOOD, encoding="utf-8")
    lesson = read_lesson(path)
    assert lesson.intro == "Words, and 307 steps."
    assert lesson.stops[1].say == "Step 3."
    assert (lesson.stops[1].focus.pane, lesson.stops[1].focus.part, lesson.stops[1].focus.slot) == (1, "slots", 0)
    assert lesson.stops[2].step == 306


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("title: Good", "titel: Good", 3, "titel"),
        ("minutes: 5", "minutes: soon", 4, "minutes"),
        ("scenario: four-slots", "scenario: five-slots", 5, "no preset 'five-slots'"),
        ("policies: [static, continuous]", "policies: [static, clever]", 5, "'clever' is neither"),
        ("at: start", "at: lunch", 8, "'lunch' is not a moment"),
        ("at: start", "at: step 9999", 8, "has the moment"),
        ("focus: continuous slot 0", "focus: the ceiling", 9, "nothing to point at"),
        ("{continuous.first_refill}", "{continuous.first_lunch}", 9, "no figure 'first_lunch'"),
        ("before: 2", "before: 7", 12, "there are 3 stops"),
        ("if: static.num_steps < continuous.num_steps", "if: 1 < 2", 12, "exactly one choice must be right"),
        ("if: static.num_steps > continuous.num_steps", "if: 2 < 1", 12, "exactly one choice must be right"),
        ("policies: [static-2]", "policies: [static-99999]", 20, "is neither"),
        ("StaticScheduler.may_release", "StaticScheduler.may_dance", 23, "there is no"),
        ("read: [scheduler.py", "read: [../app.py", 23, "there is no file"),
        ("claims: [static.num_steps >", "claims: [static.num_steps <", 24, "not true of the runs"),
        ("claims: [static.num_steps > continuous.num_steps]", "claims: [static.num_steps]", 24, "not true"),
    ],
)
def test_a_fault_is_named_with_file_and_line(tmp_path: Path, old: str, new: str, line: int, what: str) -> None:
    path = tmp_path / "x.md"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(LessonError, match=rf"^x\.md, line {line}: .*") as caught:
        read_lesson(path)
    assert what in str(caught.value)


@pytest.mark.parametrize("text", ["", "no front matter", "---\nid: x\n", "---\n[\n---\n", "---\njust words\n---\n"])
def test_what_is_no_lesson_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LessonError, match=r"^x\.md"):
        read_lesson(path)


@pytest.mark.parametrize(
    "where", ["../../etc/passwd x", "/etc/passwd x", "scheduler.py", "scheduler.py nothing", "nofile.py x"]
)
def test_no_other_source_can_be_reached(where: str) -> None:
    with pytest.raises(SourceError):
        source_text(where)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(GOOD)), st.integers(0, 40), st.text(alphabet="{}[]:-'\"\n #static.0()&*!|>", max_size=12))
def test_a_damaged_lesson_is_read_or_refused_with_its_name(tmp_path: Path, at: int, cut: int, put: str) -> None:
    path = tmp_path / "x.md"
    path.write_text(GOOD[:at] + put + GOOD[at + cut :], encoding="utf-8")
    said = "x.md"
    try:
        read_lesson(path)
    except LessonError as error:
        said = str(error)
    assert said.startswith("x.md")
