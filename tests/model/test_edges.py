"""Edges that engines in the field get wrong, with a real forward pass underneath."""

from __future__ import annotations

import pytest

from batchviz.engine import Engine
from batchviz.model.load import LoadedModel
from batchviz.request import Request
from batchviz.scheduler import Policy
from tests.model.tiny import prompt_of, reasons_of, request, run, tokens_of

pytestmark = pytest.mark.model

PROMPT = prompt_of(20, 3)
POLICIES = [Policy.SEQUENTIAL, Policy.STATIC, Policy.CONTINUOUS]


@pytest.fixture(scope="module")
def answer(tiny32: LoadedModel) -> list[int]:
    """What the tiny model says to PROMPT, unstopped."""
    _, snapshots = run(tiny32, Policy.SEQUENTIAL, 1, [request("r", PROMPT, 10)])
    return tokens_of(snapshots)["r"]


@pytest.mark.parametrize("policy", POLICIES)
def test_an_end_token_that_comes_first_ends_an_answer_of_one_token(
    tiny32: LoadedModel, answer: list[int], policy: Policy
) -> None:
    _, snapshots = run(tiny32, policy, 2, [request("r", PROMPT, 10, stop=answer[:1])])
    assert (tokens_of(snapshots)["r"], reasons_of(snapshots)["r"], len(snapshots)) == (answer[:1], "stop", 1)


def test_the_first_of_several_end_tokens_ends_it(tiny32: LoadedModel, answer: list[int]) -> None:
    ends = [answer[6], answer[3], 999]
    first = min(answer.index(end) for end in ends if end in answer)
    _, snapshots = run(tiny32, Policy.CONTINUOUS, 2, [request("r", PROMPT, 10, stop=ends)])
    assert (tokens_of(snapshots)["r"], reasons_of(snapshots)["r"]) == (answer[: first + 1], "stop")


def test_an_end_token_inside_the_prompt_ends_nothing(tiny32: LoadedModel, answer: list[int]) -> None:
    inside = next(token for token in PROMPT if token not in answer)
    _, snapshots = run(tiny32, Policy.CONTINUOUS, 2, [request("r", PROMPT, 10, stop=[inside])])
    assert (tokens_of(snapshots)["r"], reasons_of(snapshots)["r"]) == (answer, "length")


def test_an_end_token_at_max_tokens_is_a_stop(tiny32: LoadedModel, answer: list[int]) -> None:
    at = answer.index(answer[4])
    _, snapshots = run(tiny32, Policy.CONTINUOUS, 2, [request("r", PROMPT, at + 1, stop=[answer[4]])])
    assert (tokens_of(snapshots)["r"], reasons_of(snapshots)["r"]) == (answer[: at + 1], "stop")


def test_one_token_at_most_is_one_token(tiny32: LoadedModel, answer: list[int]) -> None:
    _, snapshots = run(tiny32, Policy.CONTINUOUS, 2, [request("r", PROMPT, 1)])
    assert (tokens_of(snapshots)["r"], reasons_of(snapshots)["r"]) == (answer[:1], "length")


def test_an_exact_length_never_samples_an_end_token(tiny32: LoadedModel, answer: list[int]) -> None:
    exact = Request("r", PROMPT, 3, 0, frozenset(answer), output_tokens=15)
    _, snapshots = run(tiny32, Policy.CONTINUOUS, 2, [exact])
    tokens = tokens_of(snapshots)["r"]
    assert (len(tokens), reasons_of(snapshots)["r"]) == (15, "length")
    assert not set(tokens) & set(answer)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("when", [0, 1, 4, 7], ids=["waiting", "after-its-prefill", "decoding", "as-it-finishes"])
def test_an_abort_changes_nobody_elses_answer(tiny32: LoadedModel, policy: Policy, when: int) -> None:
    requests = [request(f"r{i}", prompt_of(15 + 30 * i, i), (12, 8, 5, 9, 3)[i]) for i in range(5)]
    _, alone = run(tiny32, Policy.SEQUENTIAL, 1, requests)

    def leave(engine: Engine) -> None:
        if engine.step_number == when:
            engine.abort("r1")

    _, snapshots = run(tiny32, policy, 2, requests, before_step=leave)
    expected, found = tokens_of(alone), tokens_of(snapshots)
    assert {name: ids for name, ids in found.items() if name != "r1"} == {
        name: ids for name, ids in expected.items() if name != "r1"
    }
    assert found.get("r1", []) == expected["r1"][: len(found.get("r1", []))]


def test_a_request_that_no_slot_holds_is_refused_and_those_behind_it_go_on(tiny32: LoadedModel) -> None:
    requests = [request("big", prompt_of(200), 10), request("small", PROMPT, 3)]
    _, snapshots = run(tiny32, Policy.CONTINUOUS, 1, requests, capacity=64)
    assert snapshots[0].rejected[0].request_id == "big"
    assert reasons_of(snapshots) == {"small": "length"}
    assert len(snapshots) == 3
