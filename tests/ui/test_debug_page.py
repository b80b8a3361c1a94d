"""The page *Debug*, run as Streamlit runs it: buttons, breakpoints, forks, a desk that was closed; nothing raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from batchviz.debug_registry import IDLE_S, MAX_DESKS, Registry
from batchviz.debug_start import ScriptedStart
from batchviz.debugger import DebugSession
from batchviz.presets import load_scenario
from batchviz.runs import make_config
from batchviz.scheduler import Policy
from batchviz.ui.debug_views import VIEWS
from batchviz.ui.pages import debug


def script() -> None:
    from batchviz.ui.pages.debug import debug_page

    debug_page()


@pytest.fixture
def page() -> AppTest:
    page = AppTest.from_function(script, default_timeout=60).run()
    assert not page.exception
    return page


def payload_of(page: AppTest) -> dict[str, Any]:
    (player,) = page.get("bidi_component")
    data: dict[str, Any] = json.loads(player.proto.json)
    return data


def said(page: AppTest) -> str:
    shown = [*page.markdown, *page.caption, *page.info, *page.warning]
    return " ".join(element.value for element in shown).replace("\\", "")


def press(page: AppTest, *names: str) -> AppTest:
    for name in names:
        page.button(key=f"debug_{name}").click().run()
        assert not page.exception
    return page


def test_it_opens_on_a_first_step_and_steps_on_and_back(page: AppTest) -> None:
    assert "Step **0** of 0–0" in said(page)
    assert payload_of(page)["payload"]["panes"][0]["num_steps"] == 1
    press(page, "Step", "Step", "Back")
    assert "Step **1** of 0–2" in said(page)
    assert payload_of(page)["seek"] == {"n": 4, "step": 1, "play": False}


def test_into_reveals_the_phases(page: AppTest) -> None:
    press(page, "Into", "Into")
    assert "arrivals and admissions → **the packed batch**" in said(page)
    assert "forward pass" not in said(page).split("Step **")[1].split("·")[1]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_at_every_kind_of_step(page: AppTest, view: str) -> None:
    for _ in range(5):
        press(page, "Next event")
        page.segmented_control(key="debug_view").set_value(view).run()
        assert not page.exception


def test_a_breakpoint_stops_and_says_why_and_nonsense_is_refused(page: AppTest) -> None:
    page.text_input(key="debug_condition").input("slot 0 held")
    page.button(key="FormSubmitter:debug_break-Add").click().run()
    press(page, "Continue")
    assert "Stopped at step 3: slot 0 is held." in said(page)
    page.text_input(key="debug_condition").input("lunch")
    page.button(key="FormSubmitter:debug_break-Add").click().run()
    assert "'lunch' is not a condition" in page.warning[0].value.replace("\\", "")
    page.button(key="debug_delete_0").click().run()
    assert not page.exception
    press(page, "Continue")
    assert "the run is over" in said(page)
    assert page.button(key="debug_Step").disabled


def test_a_fork_stands_beside_its_run_and_both_can_be_driven(page: AppTest) -> None:
    press(page, *["Step"] * 5)
    page.selectbox(key="debug_fork_policy").select("continuous")
    fork = next(button for button in page.button if button.label == "Fork")
    fork.click().run()
    assert not page.exception
    assert "The same 6 steps, replayed and checked; from here on continuous." in said(page)
    press(page, "Step", "Step")
    panes = payload_of(page)["payload"]["panes"]
    assert [(pane["policy"], pane["num_steps"]) for pane in panes] == [("static", 6), ("continuous", 8)]
    page.radio(key="debug_run_2").set_value(0).run()
    press(page, "Step")
    assert [pane["num_steps"] for pane in payload_of(page)["payload"]["panes"]] == [7, 8]
    page.toggle(key="debug_beside").set_value(False).run()
    assert len(payload_of(page)["payload"]["panes"]) == 1


def test_an_abort_in_the_past_is_refused_calmly(page: AppTest) -> None:
    press(page, "Step", "Step", "Back")
    next(button for button in page.button if button.label == "Abort").click().run()
    assert not page.exception
    assert "only what lies ahead can be changed" in page.warning[0].value.replace("\\", "")


def test_other_knobs_begin_anew(page: AppTest) -> None:
    press(page, "Step")
    page.selectbox(key=debug.PRESET).select("golden-lengths").run()
    page.selectbox(key=debug.POLICY).select("continuous").run()
    page.number_input(key=debug.SLOTS).set_value(7).run()
    assert not page.exception
    pane = payload_of(page)["payload"]["panes"][0]
    assert (pane["policy"], pane["num_slots"], pane["num_steps"]) == ("continuous", 7, 1)


def test_a_desk_that_was_closed_is_said_and_another_is_there(page: AppTest) -> None:
    press(page, "Step")
    debug._registry().close(page.session_state[debug.DESK])
    page.run()
    assert not page.exception
    assert debug.CLOSED in said(page)
    assert "Step **0**" in said(page)


def new_session() -> DebugSession:
    return DebugSession(ScriptedStart(load_scenario("golden-lengths"), 1024), make_config(Policy.STATIC, 4))


def test_desks_are_closed_when_nobody_uses_them_and_there_are_never_too_many() -> None:
    now = [0.0]
    registry = Registry(lambda: now[0])
    first = registry.open(new_session())
    now[0] = IDLE_S
    assert registry.find(first) is not None
    now[0] = 2 * IDLE_S + 1
    assert registry.find(first) is None
    keys = []
    for number in range(MAX_DESKS + 1):
        now[0] += 1
        keys.append(registry.open(new_session()))
        if number:
            assert registry.find(keys[1 if number > 1 else 0]) is not None
    assert registry.find(keys[0]) is None
    assert len(set(keys)) == len(keys)
