"""The page *Debug*, run as Streamlit runs it: buttons, breakpoints, forks, a desk that was closed; nothing raised."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from batchviz.debug_registry import IDLE_S, MAX_DESKS, MAX_MODEL_DESKS, SEATS_TAKEN, NoSeatError, Registry
from batchviz.debug_start import ScriptedStart
from batchviz.debugger import DebugSession
from batchviz.presets import load_scenario
from batchviz.runs import make_config
from batchviz.scheduler import Policy
from batchviz.ui import debug_desk, state
from batchviz.ui.debug_views import VIEWS
from tests.ui.component import data_of


def script() -> None:
    from batchviz.ui.pages.debug import debug_page

    debug_page()


@pytest.fixture
def page() -> AppTest:
    page = AppTest.from_function(script, default_timeout=60).run()
    assert not page.exception
    return page


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
    assert data_of(page)["payload"]["panes"][0]["num_steps"] == 1
    press(page, "Step", "Step", "Back")
    assert "Step **1** of 0–2" in said(page)
    assert data_of(page)["seek"] == {"n": 4, "step": 1, "play": False}


def test_into_reveals_the_phases(page: AppTest) -> None:
    press(page, "Into", "Into")
    assert "arrivals and admissions → **the packed batch**" in said(page)
    assert "forward pass" not in said(page).split("Step **")[1].split("·")[1]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_at_every_kind_of_step(page: AppTest, view: str) -> None:
    for _ in range(5):
        press(page, "Next event")
        page.pills(key="debug_view").set_value(view).run()
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
    panes = data_of(page)["payload"]["panes"]
    assert [(pane["policy"], pane["num_steps"]) for pane in panes] == [("static", 6), ("continuous", 8)]
    page.radio(key="debug_run_2").set_value(0).run()
    press(page, "Step")
    assert [pane["num_steps"] for pane in data_of(page)["payload"]["panes"]] == [7, 8]
    page.toggle(key="debug_beside").set_value(False).run()
    assert len(data_of(page)["payload"]["panes"]) == 1


def test_an_abort_in_the_past_is_refused_calmly(page: AppTest) -> None:
    press(page, "Step", "Step", "Back")
    next(button for button in page.button if button.label == "Abort").click().run()
    assert not page.exception
    assert "only what lies ahead can be changed" in page.warning[0].value.replace("\\", "")


def test_other_knobs_begin_anew(page: AppTest) -> None:
    press(page, "Step")
    page.selectbox(key=debug_desk.PRESET).select("golden-lengths").run()
    page.selectbox(key=debug_desk.POLICY).select("continuous").run()
    page.number_input(key=debug_desk.SLOTS).set_value(7).run()
    assert not page.exception
    pane = data_of(page)["payload"]["panes"][0]
    assert (pane["policy"], pane["num_slots"], pane["num_steps"]) == ("continuous", 7, 1)


def test_a_desk_that_was_closed_is_said_and_another_is_there(page: AppTest) -> None:
    press(page, "Step")
    debug_desk.registry().close(page.session_state[state.VIEWER])
    page.run()
    assert not page.exception
    assert debug_desk.CLOSED in said(page)
    assert "Step **0**" in said(page)


def new_session() -> DebugSession:
    return DebugSession(ScriptedStart(load_scenario("golden-lengths"), 1024), make_config(Policy.STATIC, 4))


def test_desks_are_closed_when_nobody_uses_them_and_there_are_never_too_many() -> None:
    now = [0.0]
    registry = Registry(lambda: now[0])
    registry.open("first", new_session())
    now[0] = IDLE_S
    assert registry.find("first") is not None
    now[0] = 2 * IDLE_S + 1
    assert registry.find("first") is None
    for number in range(MAX_DESKS + 1):
        now[0] += 1
        registry.open(f"visitor {number}", new_session())
        if number:
            assert registry.find(f"visitor {1 if number > 1 else 0}") is not None
    assert registry.find("visitor 0") is None


def watched_sessions(count: int) -> tuple[list[DebugSession], list[int]]:
    """Sessions, and the list of those that were ended, in their order."""
    ended: list[int] = []
    sessions = [new_session() for _ in range(count)]
    for number, session in enumerate(sessions):
        session.end = lambda number=number: ended.append(number)  # type: ignore[method-assign, misc]
    return sessions, ended


def test_two_seats_at_the_model_and_no_more_until_one_is_left() -> None:
    now = [0.0]
    registry = Registry(lambda: now[0])
    assert MAX_MODEL_DESKS == 2
    registry.open("a", new_session(), on_model=True)
    registry.open("b", new_session(), on_model=True)
    assert registry.has_seat("a")  # to begin anew
    assert not registry.has_seat("c")
    (late,), ended = watched_sessions(1)
    with pytest.raises(NoSeatError, match="no more seats"):
        registry.open("c", late, on_model=True)
    assert ended == [0]  # its engine is not left behind
    registry.open("c", new_session())  # the recorded ones are for everybody
    registry.close("a")
    assert registry.has_seat("c")
    registry.open("c", new_session(), on_model=True)
    assert not registry.has_seat("a")
    now[0] = IDLE_S + 1
    assert registry.has_seat("a")
    assert registry.find("b") is None


def test_a_visitor_has_one_desk_however_often_a_script_began_anew() -> None:
    registry = Registry(float)
    sessions, ended = watched_sessions(3)
    for session in sessions:
        registry.open("a", session, on_model=True)
    assert ended == [0, 1]
    assert registry.has_seat("b")
    desk = registry.find("a")
    assert desk is not None
    assert desk.current is sessions[2]


def test_a_desk_that_is_closed_lets_go_of_its_engines_and_of_its_forks() -> None:
    registry = Registry(float)
    sessions, ended = watched_sessions(3)
    desk = registry.open("a", sessions[0])
    desk.fork_to(sessions[1])
    assert desk.current is sessions[1]
    desk.fork_to(sessions[2])
    assert ended == [1]
    registry.close("a")
    assert ended == [1, 0, 2]


def test_a_request_of_given_lengths_joins_a_run_without_a_model(page: AppTest) -> None:
    page.selectbox(key=debug_desk.PRESET).select("golden-lengths").run()
    page.number_input(key="debug_answer").set_value(3)
    page.number_input(key="debug_prompt_tokens").set_value(5)
    page.button(key="FormSubmitter:debug_inject-Inject").click().run()
    assert not page.exception
    assert "new-1 arrives with the next step: 5 prompt tokens." in said(page)
    press(page, "Step")
    assert "**I** new-1" in said(page)
    assert "new-1 arrived" in said(page)


def test_a_recording_says_why_it_takes_no_request_and_has_no_probabilities(page: AppTest) -> None:
    assert "A recording has no tokens for a new request" in said(page)
    page.pills(key="debug_view").set_value("Sampling").run()
    assert "without the probabilities" in said(page)


@pytest.mark.model
def test_the_live_model_is_stepped_asked_and_forked(page: AppTest) -> None:
    page.segmented_control(key=debug_desk.TOKENS).set_value(debug_desk.LIVE).run(timeout=120)
    assert not page.exception
    assert "Step **0**" in said(page)
    page.pills(key="debug_view").set_value("Sampling").run()
    table = page.dataframe[0].value
    assert list(table["chosen"]) == [True, *[False] * 9]
    assert table["probability"].is_monotonic_decreasing
    page.text_input(key="debug_words").input("Name one fruit.")
    page.number_input(key="debug_answer").set_value(4)
    page.button(key="FormSubmitter:debug_inject-Inject").click().run()
    assert "new-1 arrives with the next step" in said(page)
    press(page, "Step", "Step")
    page.selectbox(key="debug_fork_policy").select("continuous")
    page.number_input(key="debug_fork_slots").set_value(12)
    next(button for button in page.button if button.label == "Fork").click().run(timeout=120)
    assert not page.exception
    assert "The same 3 steps, replayed and checked; from here on continuous." in said(page)
    press(page, "Step")
    page.pills(key="debug_view").set_value("Decisions").run()
    assert "new-1 was admitted to slot" in said(page)
    page.pills(key="debug_view").set_value("Time").run()
    assert "forward: attention" in list(page.dataframe[0].value["part"])
    others = [AppTest.from_function(script, default_timeout=60).run() for _ in range(2)]
    for other in others:
        other.segmented_control(key=debug_desk.TOKENS).set_value(debug_desk.LIVE).run(timeout=120)
        assert not other.exception
    assert SEATS_TAKEN[:40] in said(others[1])
    assert others[1].segmented_control(key=debug_desk.TOKENS).value == debug_desk.RECORDED
    assert "Step **0**" in said(others[1])
    for one in (page, others[0]):
        debug_desk.registry().close(one.session_state[state.VIEWER])
