"""Clocks that jump, files of the future, scenarios at their limits, addresses of any kind: an answer or one sentence."""

from __future__ import annotations

from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from batchviz.check import check_trace
from batchviz.engine import Engine
from batchviz.link import view_from_params
from batchviz.metrics import request_results
from batchviz.request import Request
from batchviz.runner import RunnerOutput
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scenario_file import dump_scenario, parse_scenario
from batchviz.scheduler import Policy, SchedulerOutput, make_scheduler
from batchviz.trace import ArrivalUnit, TraceStatus
from batchviz.trace_file import TraceError, bundle_to_json, trace_to_json, traces_from_json
from batchviz.ui.pages.learn import MAX_CARD, _card
from tests.builders import scripted_trace
from tests.refusals import refusal

HOUR_S = 3_600.0
POLICIES = list(Policy)


class Jumping:
    """A runner that measures itself with a clock that jumps."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = chain(seconds, repeat(0.01))

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput:
        tokens = {work.slot: 7 for work in scheduled.scheduled if work.samples}
        return RunnerOutput(tokens, next(self._seconds), next(self._seconds), len(tokens))


@given(
    st.lists(st.sampled_from((-30 * HOUR_S, -0.5, 0.0, 0.02, 30 * HOUR_S)), max_size=12), st.sampled_from(ArrivalUnit)
)
@settings(deadline=None, max_examples=60)
def test_a_clock_that_jumps_makes_no_negative_seconds_and_no_crash(jumps: list[float], unit: ArrivalUnit) -> None:
    hands = chain(jumps, repeat(0.001))
    now = [0.0]

    def clock() -> float:
        now[0] += next(hands)
        return now[0]

    scheduler = make_scheduler(Policy.CONTINUOUS, 2)
    engine = Engine(scheduler, Jumping(jumps), clock=clock, arrival_unit=unit)
    engine.add_all(Request(f"r{n}", (1, 2), 4, n, output_tokens=4) for n in range(4))
    steps = engine.run(1_000)
    assert not engine.has_work
    assert all(min(step.schedule_s, step.forward_s, step.sample_s, step.duration_s) >= 0 for step in steps)
    assert [step.start_s for step in steps] == sorted(step.start_s for step in steps)


@pytest.mark.parametrize("schema", ["batchviz-trace/2", "batchviz-bundle/2", "batchviz-trace/17"])
def test_a_file_of_a_newer_version_is_said_to_be_one(schema: str) -> None:
    with pytest.raises(TraceError) as caught:
        traces_from_json(f'{{"schema": "{schema}", "novelty": []}}', name="x.json")
    assert str(caught.value) == (
        f"x.json: schema is '{schema}', of a newer batchviz; update this one to open it; "
        "this version reads 'batchviz-trace/1' and 'batchviz-bundle/1'"
    )


def test_a_newer_trace_inside_a_bundle_is_said_to_be_one() -> None:
    text = bundle_to_json([scripted_trace(Policy.STATIC, 2, [1, 2])]).replace("batchviz-trace/1", "batchviz-trace/2")
    with pytest.raises(TraceError, match=r"traces\[0\]: schema is 'batchviz-trace/2', of a newer batchviz"):
        traces_from_json(text)


@pytest.mark.parametrize("schema", ["batchviz-trace/1x", "batchviz-trace/0", "other/2"])
def test_what_was_never_a_schema_is_not_called_newer(schema: str) -> None:
    with pytest.raises(TraceError) as caught:
        traces_from_json(f'{{"schema": "{schema}"}}')
    assert "newer" not in str(caught.value)


ANY_TEXT = st.text(max_size=60) | st.sampled_from(("²", "٣", "-1", "99999", "1" * 5000, "\x00", "0x3", "NaN", "null"))


@given(
    st.dictionaries(
        ANY_TEXT | st.sampled_from(("preset", "panes", "scenario", "chart", "step", "speed", "theme")), ANY_TEXT
    )
)
def test_parameters_of_any_kind_never_raise(params: dict[str, str]) -> None:
    assert len(view_from_params(params).panes) <= 3


@given(ANY_TEXT)
def test_a_card_of_any_kind_is_one_that_may_be(text: str) -> None:
    assert 0 <= _card(text) <= MAX_CARD


@pytest.mark.parametrize(
    "params",
    [
        {"lesson": "<script>alert(1)</script>", "stop": "-3", "present": "yes"},
        {"lesson": "\x00", "stop": "²"},
        {"lesson": "x" * 5000, "stop": "9" * 5000},
        {"stop": "٣", "present": "1"},
    ],
)
def test_the_page_learn_opens_whatever_its_address_says(params: dict[str, str]) -> None:
    page = AppTest.from_string("from batchviz.ui.pages.learn import learn_page\nlearn_page()", default_timeout=60)
    for key, value in params.items():
        page.query_params[key] = value
    page.run()
    assert not page.exception
    assert [info.value for info in page.info] == (
        ["There is no lesson of that name; here are those that there are."] if "lesson" in params else []
    )


PROMPTS = {
    "right-to-left": "\u202eمرحبا بالعالم\u202c שלום",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪👍🏽" * 40,
    "html": "<script>alert('x')</script><img src=x onerror=alert(1)>&amp;",
    "markdown": "# A\n**b** [c](javascript:alert(1)) ![d](e) `f` | g | ~~h~~ :red[i] $j$",
    "latex": r"$$\frac{1}{0}$$ \begin{document} \input{/etc/passwd}",
    "yaml": "- a: &b *b\n  <<: !!python/object/apply:os.system ['x']",
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
def test_a_prompt_of_any_writing_is_kept_letter_for_letter(prompt: str) -> None:
    scenario = Scenario("s", "S", (ScenarioRequest("r", 5, prompt=prompt, output_tokens=2),))
    again = parse_scenario(dump_scenario(scenario).encode(), "x.yaml", is_json=False)
    assert again.requests[0].prompt == prompt
    trace = scripted_run(again, make_config(Policy.STATIC, 1)).finish()
    (read,) = traces_from_json(trace_to_json(trace))
    assert read.scenario.requests[0].prompt == prompt


@pytest.mark.parametrize("character", ["\\u0000", "\\u0007", "\\u001b", "\\ud800"])
def test_a_prompt_of_control_characters_is_refused(character: str) -> None:
    raw = f'{{"title": "T", "requests": [{{"id": "r", "max_tokens": 5, "prompt": "a{character}b"}}]}}'
    assert "without control characters" in refusal(raw, is_json=True)


def test_a_prompt_of_100_000_characters_is_refused_with_the_limit() -> None:
    assert "20,000" in refusal(f"title: T\nrequests:\n  - {{id: r, max_tokens: 5, prompt: '{'x' * 100_000}'}}\n")


def test_a_scenario_without_requests_is_refused() -> None:
    assert "requests" in refusal("title: T\nrequests: []\n")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("num_slots", [1, 64])
@pytest.mark.parametrize("num_requests", [1, 500])
def test_one_and_500_requests_run_on_one_and_64_slots(num_requests: int, num_slots: int, policy: Policy) -> None:
    requests = tuple(ScenarioRequest(f"r{i}", 1, prompt_tokens=3, output_tokens=1) for i in range(num_requests))
    trace = scripted_run(Scenario("s", "S", requests), make_config(policy, num_slots)).finish()
    assert trace.status is TraceStatus.COMPLETE
    assert check_trace(trace) == []
    assert [result.num_output_tokens for result in request_results(trace)] == [1] * num_requests
    assert len(trace.steps) == -(-num_requests // (1 if policy is Policy.SEQUENTIAL else num_slots))
