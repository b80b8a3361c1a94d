"""Arrivals in seconds, prefill modes, budgets and time-outs in a scenario file: read exactly, or refused in a sentence."""

from __future__ import annotations

import pytest

from batchviz.metrics import request_results
from batchviz.prefill import PrefillMode
from batchviz.runs import make_config, scenario_config, scripted_run
from batchviz.scenario import Scenario
from batchviz.scenario_file import dump_scenario, parse_scenario
from batchviz.scheduler import Policy
from batchviz.trace import ArrivalUnit
from tests.refusals import refusal

REQUESTS = (
    "requests: [{id: A, prompt_tokens: 9, output_tokens: 3}, {id: B, prompt_tokens: 9, output_tokens: 3, arrival: 2}]\n"
)


def scenario_of(text: str) -> Scenario:
    return parse_scenario(text.encode(), "x.yaml", is_json=False)


def test_arrivals_in_seconds_are_any_number() -> None:
    scenario = scenario_of("arrival_unit: seconds\n" + REQUESTS.replace("arrival: 2", "arrival: 2.75"))
    assert (scenario.arrival_unit, scenario.requests[1].arrival) == ("seconds", 2.75)
    assert parse_scenario(dump_scenario(scenario).encode(), "x.yaml", is_json=False).requests == scenario.requests


def test_a_run_follows_the_seconds_of_its_steps() -> None:
    scenario = scenario_of("arrival_unit: seconds\n" + REQUESTS.replace("arrival: 2", "arrival: 9.5"))
    trace = scripted_run(scenario, make_config(Policy.CONTINUOUS, 1)).finish()
    assert trace.scenario.arrival_unit is ArrivalUnit.SECONDS
    assert len(trace.steps) == 6, "it jumps over the gap"
    assert (trace.steps[3].start_s, request_results(trace)[1].queue_s) == (9.5, 0)


@pytest.mark.parametrize(
    ("given", "shown"), [("1.5", "1.5"), ("-1", "-1"), ("1000001", "1000001"), ("true", "true"), ("soon", "the text")]
)
def test_arrivals_in_steps_are_whole(given: str, shown: str) -> None:
    said = refusal(REQUESTS.replace("arrival: 2", f"arrival: {given}"))
    assert f"requests[1].arrival is {shown}" in said
    assert said.endswith("; it must be a whole number of steps from 0 to 1,000,000")


@pytest.mark.parametrize(
    ("given", "shown"), [("-0.5", "-0.5"), (".nan", "not a number"), (".inf", "infinite"), ("true", "true"), ("x", "")]
)
def test_arrivals_in_seconds_are_finite_and_not_before_the_start(given: str, shown: str) -> None:
    said = refusal("arrival_unit: seconds\n" + REQUESTS.replace("arrival: 2", f"arrival: {given}"))
    assert said.startswith(f"bad.yaml, line 2: requests[1].arrival is {shown}")
    assert said.endswith("; it must be a number of seconds from 0 to 1,000,000")


def test_a_scenario_may_say_how_it_is_best_run() -> None:
    settings = "prefill: chunked\nmax_batched_tokens: 8\nkv_budget_tokens: 100\ngroup_timeout: 2.5\n"
    scenario = scenario_of(settings + REQUESTS)
    assert scenario.prefill is PrefillMode.CHUNKED
    assert (scenario.max_batched_tokens, scenario.kv_budget_tokens, scenario.group_timeout) == (8, 100, 2.5)
    assert scenario_of(dump_scenario(scenario)) == scenario_of(settings + "name: scenario\n" + REQUESTS)
    config = scenario_config(scenario, Policy.STATIC)
    assert (config.prefill, config.max_batched_tokens) == (PrefillMode.CHUNKED, 8)
    assert (config.kv_budget_tokens, config.group_timeout) == (100, 2.5)
    assert scenario_config(scenario, Policy.CONTINUOUS).group_timeout == 0, "only static groups wait"


def test_what_is_asked_for_goes_before_what_the_scenario_says() -> None:
    scenario = scenario_of("prefill: chunked\nmax_batched_tokens: 8\ngroup_timeout: 3\n" + REQUESTS)
    mixed = scenario_config(scenario, Policy.STATIC, 2, prefill=PrefillMode.MIXED, group_timeout=0)
    assert mixed == make_config(Policy.STATIC, 2)
    assert scenario_config(scenario, Policy.STATIC, max_batched_tokens=32).max_batched_tokens == 32
    with pytest.raises(ValueError, match="max_batched_tokens is 8; 9 slots need at least 9"):
        scenario_config(scenario, Policy.STATIC, 9)


BAD = [
    ("arrival_unit: hours\n", "arrival_unit is the text 'hours'; it must be the word steps or the word seconds"),
    ("prefill: eager\n", "prefill is the text 'eager'; it must be one of mixed, exclusive, chunked"),
    ("prefill: chunked\n", "prefill mode chunked needs max_batched_tokens"),
    ("max_batched_tokens: 8\n", "max_batched_tokens belongs to prefill mode chunked; the mode is mixed"),
    ("prefill: chunked\nmax_batched_tokens: 3\n", "line 2: max_batched_tokens is 3; 4 slots need at least 4"),
    ("kv_budget_tokens: 0\n", "kv_budget_tokens is 0; it must be a whole number from 1 to 10,000,000"),
    ("group_timeout: -1\n", "group_timeout is -1; it must be a number from 0 to 10,000"),
    ("group_timeout: .nan\n", "group_timeout is not a number (NaN); it must be"),
    ("group_timeout: true\n", "group_timeout is true; it must be a number"),
    ("group_timeout: long\n", "group_timeout is the text 'long'; it must be a number"),
]


@pytest.mark.parametrize(("settings", "said"), BAD, ids=[settings.split("\n")[0] for settings, _ in BAD])
def test_settings_that_cannot_be_are_refused(settings: str, said: str) -> None:
    assert said in refusal(settings + REQUESTS)


@pytest.mark.parametrize("group_timeout", [-1, 10_001, float("nan"), float("inf")])
def test_a_configuration_waits_a_bearable_time(group_timeout: float) -> None:
    with pytest.raises(ValueError, match="it must be a number from 0 to 10,000"):
        make_config(Policy.STATIC, 2, group_timeout=group_timeout)
