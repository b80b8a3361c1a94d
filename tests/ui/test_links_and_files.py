"""Links opened and written, files opened and refused, panes set apart: the page's script run without a browser."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from batchviz.link import panes_from_text, scenario_to_text
from batchviz.prefill import PrefillMode
from batchviz.presets import load_scenario
from batchviz.recordings import load_recording
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scenario_file import dump_scenario
from batchviz.scheduler import Policy
from batchviz.trace import Trace, TracedRequest, TraceStatus
from batchviz.trace_file import TraceError, bundle_to_json, trace_to_json
from batchviz.ui import first_page
from tests.builders import GOLDEN_LENGTHS, scripted_trace
from tests.story import story
from tests.ui.component import data_of
from tests.ui.test_compare_page import APP, captions, charts_of, opened, panes_of, payload_of

TRACE = scripted_trace(Policy.STATIC, 4, GOLDEN_LENGTHS)


def opened_at(**params: str) -> AppTest:
    page = AppTest.from_file(APP, default_timeout=60)
    for key, value in params.items():
        page.query_params[key] = value
    page.run()
    assert not page.exception
    return page


def with_file(name: str, content: bytes | str) -> AppTest:
    page = opened()
    raw = content.encode() if isinstance(content, str) else content
    page.file_uploader(key="upload").set_value((name, raw, "application/octet-stream")).run()
    assert not page.exception
    return page


def warnings(page: AppTest) -> str:
    return " ".join(warning.value for warning in page.warning).replace("\\", "")


def with_open(page: AppTest, *boxes: str) -> AppTest:
    for box in boxes:
        page.session_state[box] = True
    page.run()
    assert not page.exception
    return page


def query(page: AppTest) -> dict[str, str]:
    return {key: value[0] if isinstance(value, list) else value for key, value in dict(page.query_params).items()}


def test_the_usual_view_has_a_bare_address() -> None:
    assert query(opened()) == {}


def test_a_link_opens_its_preset_panes_chart_and_step() -> None:
    page = opened_at(
        preset="eight-chats",
        panes="sequential-1,static-4,continuous-4-chunked-b16-k900",
        chart="queue",
        step="48",
        speed="2",
    )
    assert [(policy, slots) for policy, slots, _ in panes_of(page)] == [
        ("sequential", 1),
        ("static", 4),
        ("continuous", 4),
    ]
    assert page.selectbox(key="preset").value == "eight-chats"
    with_open(page, "settings")
    assert page.selectbox(key="prefill_third").value == "chunked"
    assert page.number_input(key="budget_third").value == 16
    assert page.number_input(key="kv_third").value == 900
    assert page.session_state["chart"] == "queue"
    assert data_of(page)["seek"] == {"n": 1, "step": 48, "speed": 2, "play": False}


@pytest.mark.parametrize(
    "params",
    [
        {"preset": "<script>"},
        {"panes": "static-4,"},
        {"panes": "best-99"},
        {"step": "-1", "speed": "1e9", "chart": "pie", "theme": "dark<script>"},
        {"scenario": "AAAA"},
        {"preset": "no-such-preset", "step": "999999"},
    ],
)
def test_garbage_in_a_link_falls_back_quietly(params: dict[str, str]) -> None:
    page = opened_at(**params)
    assert panes_of(page) == panes_of(opened())
    assert not page.warning


def test_a_turned_knob_is_in_the_address_and_opens_again() -> None:
    page = with_open(opened(), "settings")
    page.selectbox(key="third").select("sequential").run()
    page.number_input(key="slots").set_value(2).run()
    assert query(page) == {"panes": "static-2,continuous-2,sequential-1"}
    assert panes_of(opened_at(**query(page))) == panes_of(page)


def test_the_theme_of_a_link_stays_in_the_address() -> None:
    page = opened_at(theme="dark")
    page.number_input(key="slots").set_value(2).run()
    assert query(page) == {"panes": "static-2,continuous-2", "theme": "dark"}


def test_going_back_in_the_browser_turns_the_knobs_back() -> None:
    page = opened()
    page.number_input(key="slots").set_value(2).run()
    del page.query_params["panes"]
    page.run()
    assert page.number_input(key="slots").value == 4


def test_the_link_says_where_the_player_rests() -> None:
    page = with_open(opened_at(step="31"), "share_box")
    assert "step=31" in page.code[0].value


def test_links_files_and_long_tables_are_made_once_somebody_opens_them() -> None:
    page = opened()
    assert not page.code
    assert not page.get("download_button")
    assert len(page.dataframe) == 1  # the figures
    assert len(with_open(page, "share_box").get("download_button")) > 5
    with_open(page, "box_prompts", "box_series", "box_requests")
    prompts, steps, figures, requests = (frame.value for frame in page.dataframe)
    assert list(requests["answer"][:1]) == ["No."]
    assert list(prompts["prompt"]) == list(requests["prompt"][:8])
    assert "figure" in figures
    assert "step" in steps


def test_what_settings_say_holds_while_their_box_is_closed() -> None:
    page = with_open(opened(), "settings")
    page.number_input(key="slots_left").set_value(2).run()
    page.session_state["settings"] = False
    page.run()
    page.number_input(key="slots").set_value(6).run()
    assert query(page) == {"panes": "static-2,continuous-6"}
    assert with_open(page, "settings").number_input(key="slots_left").value == 2


def test_each_pane_has_its_own_slots_prefill_and_budgets() -> None:
    page = with_open(opened(), "settings")
    page.selectbox(key="left").select("continuous").run()
    page.number_input(key="slots_left").set_value(2).run()
    page.selectbox(key="prefill_right").select("chunked").run()
    page.number_input(key="budget_right").set_value(1).run()
    assert not page.exception
    assert query(page) == {"panes": "continuous-2,continuous-4-chunked-b4"}  # a token a slot at least
    assert [slots for _, slots, _ in panes_of(page)] == [2, 4]
    page.selectbox(key="preset").select("sixteen-chats").run()
    assert [(policy, slots) for policy, slots, _ in panes_of(page)] == [("static", 8), ("continuous", 8)]


def test_a_scenario_of_exact_lengths_is_shown_at_once_without_a_model() -> None:
    page = with_file("mine.yaml", dump_scenario(load_scenario("golden-lengths")))
    assert page.selectbox(key="preset").value == "own"
    assert [steps for _, _, steps in panes_of(page)] == [448, 320, 200]
    assert "No model" in captions(page)
    assert not [button for button in page.button if button.key == "run_live"]
    link = query(page)
    assert set(link) == {"scenario"}
    assert panes_of(opened_at(**link)) == panes_of(page)


def test_a_scenario_of_words_is_offered_to_run_live() -> None:
    page = with_file("mine.json", '{"title": "Two", "requests": [{"id": "a", "prompt": "Hi <b>", "max_tokens": 5}]}')
    assert payload_of(page)["panes"] == []
    assert "no recorded answers yet" in page.info[0].value
    assert page.button(key="run_live")
    assert len(charts_of(page)) == 0


def test_a_workload_of_a_real_server_is_taken_in_part() -> None:
    rows = "\n".join(f"2023-11-16 18:15:{46 + i % 10}.{i:07d},{100 + i},{i + 1}" for i in range(9))
    page = with_file("azure.csv", f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}\n2023-11-16 18:16:00.0,5000,5")
    assert len(payload_of(page)["requests"]["id"]) == 9


def test_a_recorded_trace_is_shown_as_it_is_and_scheduled_anew() -> None:
    recordings = load_recording("four-slots")
    page = with_file("run.json.gz", gzip.compress(bundle_to_json(recordings).encode()))
    assert [steps for _, _, steps in panes_of(page)] == [len(trace.steps) for trace in recordings]
    assert not page.warning
    page.number_input(key="slots").set_value(8).run()
    assert [(slots, steps) for _, slots, steps in panes_of(page)] == [(8, 200), (8, 200)]
    assert "travels as a file" in captions(with_open(page, "share_box"))


def test_a_lone_trace_is_held_against_the_other_way_to_batch() -> None:
    page = with_file("one.json", trace_to_json(TRACE))
    assert [policy for policy, _, _ in panes_of(page)] == ["static", "continuous"]


def test_an_unfinished_trace_is_shown_as_it_is() -> None:
    page = with_file("cut.json", trace_to_json(replace(TRACE, steps=TRACE.steps[:50], status=TraceStatus.CANCELLED)))
    assert [steps for _, _, steps in panes_of(page)] == [50]
    assert "cannot be scheduled anew" in captions(page)


def broken(trace: Trace) -> Trace:
    first = trace.steps[0]
    return replace(trace, steps=(first._replace(num_waiting=first.num_waiting + 1), *trace.steps[1:]))


def test_a_trace_that_breaks_the_rules_is_shown_and_that_is_said() -> None:
    page = with_file("odd.json", trace_to_json(broken(TRACE)))
    assert "breaks the rules of scheduling: steps[0]: num_waiting is 5; 4 wait" in warnings(page)
    assert [policy for policy, _, _ in panes_of(page)] == ["static"]


STRANGE = replace(TRACE, steps=(TRACE.steps[0]._replace(arrived=("nobody",)), *TRACE.steps[1:]))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", "[1, 2", "a.json"),
        ("a.yaml", "requests: 5", "requests is 5; it must be a list"),
        ("a.yaml", "", "a.yaml"),
        ("a.json", '{"schema": "batchviz-trace/9"}', "this version reads"),
        ("a.gz", b"\x1f\x8bnonsense", "is a broken gzip file"),
        ("a.csv", "a,b\n1,2", "a.csv"),
        ("a.json", trace_to_json(replace(TRACE, steps=())), "without a single step"),
        ("a.json", trace_to_json(STRANGE), "cannot be drawn"),
        ("<b>.yaml", "requests: [{id: a, prompt: '', max_tokens: 3}]", "requests[0].prompt is empty text"),
        ("big.json", b" " * 5_000_001, "at most 5,000,000"),
    ],
)
def test_a_bad_file_gets_one_sentence_and_what_was_there_stays(name: str, content: str | bytes, sentence: str) -> None:
    page = with_file(name, content)
    assert len(page.warning) == 1
    assert "was not opened" in warnings(page)
    assert sentence in warnings(page)
    assert panes_of(page) == panes_of(opened())


def test_a_scenario_that_cannot_run_under_these_panes_is_said() -> None:
    requests = (ScenarioRequest("a", 5, prompt_tokens=2_000, output_tokens=5),)
    page = with_file("long.yaml", dump_scenario(Scenario("long", "Long", requests)))
    assert "a slot has 1,024" in warnings(page)
    assert payload_of(page)["panes"] == []


def test_a_link_carries_a_scenario_s_settings_too() -> None:
    requests = tuple(ScenarioRequest(f"r{i}", 6, prompt_tokens=40, output_tokens=6) for i in range(5))
    mine = Scenario("m", "M", requests, num_slots=2, prefill=PrefillMode.CHUNKED, max_batched_tokens=16)
    text = scenario_to_text(mine)
    assert text is not None
    page = opened_at(scenario=text)
    expected = [
        scripted_run(mine, make_config(p, 2, prefill=PrefillMode.CHUNKED, max_batched_tokens=16)) for p in mine.policies
    ]
    assert [steps for _, _, steps in panes_of(page)] == [len(run.finish().steps) for run in expected]


def test_panes_of_a_link_are_what_the_knobs_say() -> None:
    for text in ("static-4,continuous-4", "sequential-1,static-3-exclusive-t2,continuous-9-chunked-b64-k7000"):
        page = opened_at(panes=text)
        assert panes_from_text(query(page).get("panes", "static-4,continuous-4")) == panes_from_text(text)


def test_a_live_run_may_be_one_that_can_be_written_to() -> None:
    page = opened()
    assert page.toggle(key="chat_on").value is False
    page.toggle(key="chat_on").set_value(True).run()
    assert not page.exception
    assert page.button(key="run_live")
    assert not page.chat_input  # nothing runs: there is nothing to write to


def test_a_live_run_is_shared_with_the_requests_that_were_run() -> None:
    page = opened()
    asked = replace(load_scenario("four-slots"), requests=load_scenario("four-slots").requests[:2])
    requests = tuple(
        TracedRequest(r.id, 40, r.max_tokens, 0, output_tokens=None, prompt=f"{r.prompt} Really?")
        for r in asked.requests
    )
    live = [
        replace(trace, scenario=replace(trace.scenario, requests=requests))
        for trace in story(lengths=(3, 9), ids=[r.id for r in requests], prompts=[str(r.prompt) for r in requests])
    ]
    page.session_state["live_bundle"] = bundle_to_json(live)
    page.session_state["live_run"], page.session_state["live_for"] = "live-1", "four-slots"
    with_open(page, "share_box")
    assert "A live run travels as a file" in captions(page)
    assert not page.code  # no link


@pytest.mark.parametrize("error", [TraceError("cut off"), OSError("gone")])
def test_a_recording_that_cannot_be_read_leaves_streamlit_s_own_page(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken() -> str:
        raise error

    monkeypatch.setattr(first_page, "_cover", broken)
    first_page._covered_page.cache_clear()
    assert first_page._covered_page() == first_page._plain_page()
    first_page._covered_page.cache_clear()
