"""The page's script, run as Streamlit runs it, without a browser: every knob, every preset, nothing raised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from batchviz.limits import Limits
from batchviz.presets import PRESET_NAMES, load_scenario
from batchviz.record import recorded_configs
from batchviz.scenario import ScenarioError
from batchviz.ui.prompts import live_scenario, prompt_rows
from batchviz.ui.state import plain
from tests.ui.component import data_of

LIMITS = Limits()
APP = str(Path(__file__).parent.parent.parent / "app.py")


def opened() -> AppTest:
    page = AppTest.from_file(APP, default_timeout=60).run()
    assert not page.exception
    return page


def payload_of(page: AppTest) -> dict[str, Any]:
    payload = data_of(page)["payload"]
    assert isinstance(payload, dict)
    return payload


def captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption)


def charts_of(page: AppTest) -> list[Any]:
    return list(page.get("vega_lite_chart") or page.get("arrow_vega_lite_chart"))


def panes_of(page: AppTest) -> list[tuple[str, int, int]]:
    return [(pane["policy"], pane["num_slots"], pane["num_steps"]) for pane in payload_of(page)["panes"]]


def test_the_page_opens_with_eight_chats_on_four_slots() -> None:
    page = opened()
    assert panes_of(page) == [("static", 4, 307), ("continuous", 4, 200)]
    assert "measured in that run" in captions(page)
    assert len(charts_of(page)) == 2  # one kind at a time: a chart a pane


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_every_preset_opens_with_its_own_policies_and_slots(name: str) -> None:
    page = opened()
    page.selectbox(key="preset").select(name).run()
    assert not page.exception
    expected = [(str(config.policy), config.num_slots) for config in recorded_configs(load_scenario(name))]
    assert [(policy, slots) for policy, slots, _ in panes_of(page)] == expected


def test_with_eight_slots_the_gain_in_steps_is_gone() -> None:
    page = opened()
    page.number_input(key="slots").set_value(8).run()
    assert panes_of(page) == [("static", 8, 200), ("continuous", 8, 200)]
    assert "modelled from what the recorded steps cost" in captions(page)


def test_any_policy_goes_in_any_pane() -> None:
    page = opened()
    page.selectbox(key="left").select("sequential").run()
    page.selectbox(key="right").select("static").run()
    page.number_input(key="slots").set_value(2).run()
    assert not page.exception
    assert [(policy, slots) for policy, slots, _ in panes_of(page)] == [("sequential", 1), ("static", 2)]
    page.number_input(key="slots").set_value(64).run()
    assert not page.exception


def test_the_same_policy_twice_is_two_panes() -> None:
    page = opened()
    page.selectbox(key="left").select("continuous").run()
    assert not page.exception
    assert [policy for policy, _, _ in panes_of(page)] == ["continuous", "continuous"]


def test_a_rerun_changes_nothing() -> None:
    page = opened()
    before = payload_of(page)
    assert payload_of(page.run()) == before


HOSTILE = "<img src=x onerror=alert(1)> [a](javascript:b) **c** $d$ :red[e] `f`"


def test_text_of_strangers_becomes_neither_html_nor_markdown() -> None:
    shown = plain(HOSTILE)
    for mark in "<>[]()*$`:":
        assert shown.count(f"\\{mark}") == HOSTILE.count(mark)


def row(**changed: Any) -> dict[str, Any]:
    return {"request": None, "prompt": "a", "max tokens": 5, "arrives": 0} | changed


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_table_that_was_not_changed_is_the_scenario(name: str) -> None:
    scenario = load_scenario(name)
    assert live_scenario(scenario, prompt_rows(scenario, LIMITS), LIMITS) == scenario


def test_rows_keep_their_ids_and_new_ones_are_named_after_their_place() -> None:
    scenario = load_scenario("four-slots")
    rows = prompt_rows(scenario, LIMITS)
    rows[1]["prompt"] = HOSTILE
    changed = live_scenario(
        scenario, [*rows[:2], row(), row(request=" mine "), row(prompt=None), row(prompt=float("nan"))], LIMITS
    )
    assert [r.id for r in changed.requests] == [*(r.id for r in scenario.requests[:2]), "row-3", "mine"]
    assert changed.requests[1].prompt == HOSTILE


def test_arrivals_in_seconds_stay_what_they_are() -> None:
    scenario = replace(load_scenario("four-slots"), arrival_unit="seconds")
    changed = live_scenario(scenario, [row(arrives=0.25), row(arrives=1.5)], LIMITS)
    assert [r.arrival for r in changed.requests] == [0.25, 1.5]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "no prompt to run"),
        ([row(prompt="  ")], "no prompt to run"),
        ([row(**{"max tokens": 0})], "row 1: max tokens must be a whole number from 1"),
        ([row(**{"max tokens": LIMITS.max_tokens + 1})], f"to {LIMITS.max_tokens}"),
        ([row(**{"max tokens": None})], "row 1: max tokens"),
        ([row(**{"max tokens": float("nan")})], "row 1: max tokens"),
        ([row(arrives=-1)], "row 1: the step of arrival"),
        ([row(arrives=0.5)], "the step of arrival must be a whole number"),
        ([row(arrives=float("inf"))], "the step of arrival"),
        ([row(prompt="a" * 4001)], "at most 4,000"),
        ([row(request="x"), row(request="x ")], "row 2: another request is named so"),
        ([row(request="a\x1b[31m")], "printable characters"),
        ([row(request="i" * 65)], "1 to 64"),
        ([row()] * (LIMITS.max_requests + 1), "at most 16"),
    ],
)
def test_a_table_that_cannot_run_gets_a_sentence(rows: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(ScenarioError) as error:
        live_scenario(load_scenario("four-slots"), rows, LIMITS)
    assert sentence in str(error.value)
