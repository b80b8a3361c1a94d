"""Made-up requests: the same for the same seed, within their bounds, and refused in a sentence where they cannot be."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.check import check_trace
from batchviz.runs import scenario_config, scripted_run
from batchviz.scenario import ArrivalUnitName, Scenario, ScenarioError
from batchviz.scenario_file import dump_scenario, parse_scenario
from batchviz.workload_generator import Generator, Lengths, read_lengths
from tests.refusals import refusal

FILE = """\
title: Forty strangers
arrival_unit: seconds
generate:
  requests: 40
  arrivals: poisson
  rate: 2
  prompt_tokens: {uniform: [8, 48]}
  output_tokens: {exponential: 32, max: 256}
  seed: 1
"""


def scenario_of(text: str) -> Scenario:
    return parse_scenario(text.encode(), "x.yaml", is_json=False)


def test_a_file_may_ask_for_made_up_requests() -> None:
    scenario = scenario_of(FILE)
    assert [request.id for request in scenario.requests] == [f"r{n}" for n in range(1, 41)]
    assert scenario.has_exact_lengths
    assert scenario == scenario_of(FILE)
    assert scenario.requests != scenario_of(FILE.replace("seed: 1", "seed: 2")).requests
    assert scenario_of(dump_scenario(scenario)).requests == scenario.requests, "written out, they are requests like any"
    for policy in scenario.policies:
        assert check_trace(scripted_run(scenario, scenario_config(scenario, policy)).finish()) == []


def test_the_made_up_requests_are_these_on_every_machine() -> None:
    first_three = scenario_of(FILE).requests[:3]
    expected = [(12, 30, 0.0), (34, 10, 0.015601), (16, 4, 0.204018)]
    assert [(r.prompt_tokens, r.output_tokens, r.arrival) for r in first_three] == expected


lengths = st.one_of(
    st.integers(1, 500),
    st.tuples(st.integers(1, 300), st.integers(1, 300)).map(lambda pair: {"uniform": sorted(pair)}),
    st.floats(1, 100).map(lambda mean: {"exponential": mean}),
    st.tuples(st.integers(1, 100), st.integers(1, 400)).map(lambda pair: {"exponential": pair[0], "max": pair[1]}),
).map(read_lengths)
generators = st.builds(
    Generator,
    num_requests=st.integers(1, 120),
    arrivals=st.sampled_from(("poisson", "burst")),
    prompt_tokens=lengths,
    output_tokens=lengths,
    rate=st.floats(0.01, 1000),
    burst=st.none() | st.integers(1, 150),
    seed=st.integers(0, 2**63 - 1),
)
units = st.sampled_from(("steps", "seconds"))


@settings(max_examples=200, deadline=None)
@given(generators, units)
def test_every_request_keeps_its_bounds_and_the_same_seed_gives_the_same(
    generator: Generator, unit: ArrivalUnitName
) -> None:
    requests = generator.requests(unit)
    assert requests == replace(generator).requests(unit)
    assert len(requests) == len({request.id for request in requests}) == generator.num_requests
    for request in requests:
        assert generator.prompt_tokens.least <= (request.prompt_tokens or 0) <= generator.prompt_tokens.most
        assert generator.output_tokens.least <= (request.output_tokens or 0) <= generator.output_tokens.most
        assert request.max_tokens == request.output_tokens
        assert unit == "seconds" or type(request.arrival) is int
    arrivals = [request.arrival for request in requests]
    assert arrivals[0] == 0
    assert arrivals == sorted(arrivals)


@settings(max_examples=50, deadline=None)
@given(generators, lengths)
def test_another_answer_length_leaves_prompts_and_arrivals_as_they_were(generator: Generator, other: Lengths) -> None:
    one, two = generator.requests("seconds"), replace(generator, output_tokens=other).requests("seconds")
    assert [(r.prompt_tokens, r.arrival) for r in one] == [(r.prompt_tokens, r.arrival) for r in two]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 200), st.integers(1, 30), st.floats(0.5, 50))
def test_bursts_arrive_together_at_equal_distances(num_requests: int, burst: int, rate: float) -> None:
    fixed = read_lengths(9)
    requests = Generator(num_requests, "burst", fixed, fixed, rate=rate, burst=burst).requests("seconds")
    if burst >= num_requests:
        assert {request.arrival for request in requests} == {0}
    else:
        expected = [round(place // burst * burst / rate, 6) for place in range(num_requests)]
        assert [request.arrival for request in requests] == expected


def test_without_a_size_a_burst_is_everybody_at_once() -> None:
    fixed = read_lengths(9)
    assert {request.arrival for request in Generator(50, "burst", fixed, fixed).requests("steps")} == {0}


def test_the_means_are_what_was_asked_for() -> None:
    """2,000 draws with a fixed seed; the bounds are five standard errors wide."""
    generator = Generator(
        2000, "poisson", read_lengths({"uniform": [8, 48]}), read_lengths({"exponential": 32}), rate=4
    )
    requests = generator.requests("seconds")
    assert fmean(request.prompt_tokens or 0 for request in requests) == pytest.approx(28, abs=1.4)
    assert fmean(request.output_tokens or 0 for request in requests) == pytest.approx(32, abs=3.6)
    assert requests[-1].arrival == pytest.approx(1999 / 4, rel=0.12)


LENGTHS_RULE = (
    "it must be a whole number from 1 to 100,000, or {uniform: [least, most]}, or {exponential: mean, max: most}"
)
BAD = [
    ("requests: 40", "requests: 0", 4, "generate.requests is 0; it must be a whole number from 1 to 2,000"),
    ("requests: 40", "request: 40", 4, "generate.request is not a known key; did you mean requests?"),
    ("  requests: 40\n", "", 3, "generate.requests is missing; it must be a whole number from 1 to 2,000"),
    ("poisson", "uniform", 5, "generate.arrivals is the text 'uniform'; it must be the word poisson or the word burst"),
    ("rate: 2", "rate: 0", 6, "generate.rate is 0; it must be a number of requests per step (or second) above 0"),
    ("rate: 2", "rate: .nan", 6, "generate.rate is not a number (NaN)"),
    ("rate: 2", "rate: .inf", 6, "generate.rate is infinite"),
    ("rate: 2", "rate: fast", 6, "generate.rate is the text 'fast'"),
    ("  rate: 2\n", "", 3, "generate.rate is missing; arrivals of the kind poisson need one"),
    ("rate: 2", "rate: 0.00000001", 6, "request 2 arrives after more than 1,000,000 seconds; give a higher rate"),
    ("[8, 48]", "[48, 8]", 7, f"generate.prompt_tokens is a mapping; {LENGTHS_RULE}"),
    ("{uniform: [8, 48]}", "0", 7, f"generate.prompt_tokens is 0; {LENGTHS_RULE}"),
    ("{uniform: [8, 48]}", "{normal: 5}", 7, f"generate.prompt_tokens is a mapping; {LENGTHS_RULE}"),
    ("max: 256", "max: 0", 8, f"generate.output_tokens is a mapping; {LENGTHS_RULE}"),
    ("exponential: 32", "exponential: .nan", 8, "generate.output_tokens is a mapping"),
    ("seed: 1", "seed: 1.5", 9, "generate.seed is 1.5; it must be a whole number from 0 to"),
    ("seed: 1", "seed: -1", 9, "generate.seed is -1"),
    ("seed: 1", "burst: 0", 9, "generate.burst is 0; it must be a whole number of requests from 1 to 2,000"),
    ("generate:\n", "requests: [{id: A, prompt: x, max_tokens: 1}]\ngenerate:\n", 4, "both requests and generate"),
]


@pytest.mark.parametrize(("old", "new", "line", "said"), BAD, ids=[new.strip()[:30] or old for old, new, _, _ in BAD])
def test_what_cannot_be_made_up_is_refused_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert old in FILE
    message = refusal(FILE.replace(old, new))
    assert message.startswith(f"bad.yaml, line {line}: ")
    assert said in message


def test_generate_must_be_a_mapping() -> None:
    assert "generate is a list; it must be a mapping with requests, arrivals" in refusal("generate: [1]")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["uniform", "exponential", "max", "x"]), inner, max_size=3)
        ),
        max_leaves=6,
    )
)
def test_lengths_are_read_or_refused(value: object) -> None:
    try:
        found = read_lengths(value)
    except ValueError:
        return
    assert 1 <= found.least <= found.most <= 100_000


def test_a_missing_rate_is_said_outside_files_too() -> None:
    with pytest.raises(ScenarioError, match=r"generate\.rate is missing"):
        Generator(9, "burst", read_lengths(5), read_lengths(5), burst=2).requests("steps")
