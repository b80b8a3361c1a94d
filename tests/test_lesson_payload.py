"""What the browser gets of a lesson: cards in their order, every run that they name, pictures that count right."""

from __future__ import annotations

import json
from typing import Any

import pytest

from batchviz.batch_picture import padding
from batchviz.colours import REQUEST_COLOURS
from batchviz.lesson import list_lessons
from batchviz.lesson_payload import index_payload, lesson_payload
from batchviz.lesson_runs import run_of
from batchviz.playback import NUM_COLOURS
from batchviz.step_picture import KINDS, picture

PLACES = range(len(list_lessons()))


def payload_of(place: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(lesson_payload(list_lessons(), place), allow_nan=False))
    return found


@pytest.mark.parametrize("place", PLACES)
def test_cards_come_in_order_and_a_question_before_its_stop(place: int) -> None:
    payload, lesson = payload_of(place), list_lessons()[place]
    kinds = [card["kind"] for card in payload["cards"]]
    assert kinds[0] == "intro"
    assert kinds[-3:] == ["try", "read", "end"]
    assert kinds.count("stop") == len(lesson.stops)
    assert kinds.count("question") == len(lesson.questions)
    for at, kind in enumerate(kinds):
        if kind == "question":
            following = next(card for card in payload["cards"][at:] if card["kind"] == "stop")
            assert following["stop"] - 1 in {question.before for question in lesson.questions}


@pytest.mark.parametrize("place", PLACES)
def test_every_run_that_is_named_is_there_and_none_else(place: int) -> None:
    payload = payload_of(place)
    named = {card["run"] for card in payload["cards"] if "run" in card}
    named |= {option["run"] for card in payload["cards"] for option in card.get("options", ())}
    assert named == set(payload["runs"])
    assert len(json.dumps(payload, separators=(",", ":"))) < 250_000


def test_neighbours_are_named_and_the_list_has_all() -> None:
    payloads = [payload_of(place) for place in PLACES]
    assert payloads[0]["previous"] is None
    assert payloads[-1]["next"] is None
    assert [one["next"]["id"] for one in payloads[:-1]] == [one["id"] for one in payloads[1:]]
    assert [one["id"] for one in index_payload(list_lessons())["lessons"]] == [one["id"] for one in payloads]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [0, 1, 3, 26, 199])
def test_a_picture_counts_what_the_step_counted(kind: str, step: int) -> None:
    run = run_of("four-slots", "continuous")
    facts = run.ledger[step]
    drawn = picture(kind, run.trace, facts)
    counted = padding(facts)
    coloured = [shape for shape in drawn["shapes"] if shape[4].startswith("c")]
    number = {
        "batch": counted.rows,
        "mask": counted.rows,
        "padding": counted.rows,
        "kv": sum(slot.request_id is not None for slot in facts.snapshot.slots),
    }[kind]
    assert len(coloured) == number
    if kind == "padding":
        assert sum(shape[4] == "pad" for shape in drawn["shapes"]) == counted.padded_rows - counted.rows
    for x, y, width, height, _, _ in drawn["shapes"]:
        assert -0.1 <= x <= x + width <= drawn["width"] + 0.2
        assert 0 <= y <= y + height <= drawn["height"] + 0.2


def test_pictures_have_the_players_colours() -> None:
    assert len(REQUEST_COLOURS) == NUM_COLOURS
