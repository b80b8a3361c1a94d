"""A sampled token depends on its row, its seed and its place in the answer, and on nobody beside or before it."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from batchviz.model.load import LoadedModel
from batchviz.model.sampling import are_finite, greedy, sample, without
from batchviz.request import Request, SamplingParams
from batchviz.scheduler import Policy
from tests.model.tiny import prompt_of, request, run, tokens_of

pytestmark = pytest.mark.model

LOGITS = torch.tensor([0.0, 3.0, 1.0, 2.0])


def test_greedy_takes_the_most_likely_and_of_equals_the_first() -> None:
    assert greedy(torch.tensor([[0.0, 2.0, 2.0], [5.0, 1.0, 1.0]])) == [1, 0]
    assert sample(LOGITS, SamplingParams(), 0) == 1


def test_masked_tokens_are_never_chosen() -> None:
    assert sample(without(LOGITS, frozenset({1})), SamplingParams(), 0) == 3
    drawn = {sample(without(LOGITS, frozenset({1, 3})), SamplingParams(2.0, seed=s), 0) for s in range(60)}
    assert drawn == {0, 2}


def test_nan_and_infinities_are_noticed() -> None:
    rows = torch.zeros(4, 5)
    rows[1, 2], rows[2, 0], rows[3, 4] = float("nan"), float("inf"), float("-inf")
    assert are_finite(rows) == [True, False, False, False]


def test_frequencies_are_the_probabilities() -> None:
    counts = Counter(sample(LOGITS, SamplingParams(1.0, seed=s), s % 7) for s in range(4000))
    expected = torch.softmax(LOGITS, -1).tolist()
    assert [counts[token] / 4000 for token in range(4)] == pytest.approx(expected, abs=0.03)


def test_top_p_keeps_the_fewest_tokens_that_reach_it() -> None:
    def drawn(top_p: float) -> set[int]:
        return {sample(LOGITS, SamplingParams(1.0, top_p, seed), 0) for seed in range(300)}

    assert drawn(0.3) == {1}  # alone 64 %
    assert drawn(0.7) == {1, 3}
    assert drawn(1.0) == {0, 1, 2, 3}


def test_a_draw_follows_from_seed_and_index_alone() -> None:
    params = SamplingParams(1.5, 0.9, seed=11)
    assert [sample(LOGITS, params, i) for i in range(20)] == [sample(LOGITS, params, i) for i in range(20)]
    assert len({sample(LOGITS, params, i) for i in range(20)}) > 1
    assert len({sample(LOGITS, SamplingParams(1.5, seed=s), 0) for s in range(20)}) > 1


def test_a_seeded_answer_is_the_same_alone_in_a_batch_and_after_others(tiny: LoadedModel) -> None:
    def seeded(name: str, seed: int) -> Request:
        return request(name, prompt_of(20, 4), 12, sampling=SamplingParams(1.0, 0.95, seed))

    _, alone = run(tiny, Policy.SEQUENTIAL, 1, [seeded("r", 7)])
    others = [request(f"g{i}", prompt_of(9 * i + 2, i), 2 + i) for i in range(4)]
    crowd = [*others[:3], seeded("x", 8), seeded("r", 7), others[3], seeded("twin", 7)]
    _, batched = run(tiny, Policy.CONTINUOUS, 3, crowd)
    tokens = tokens_of(batched)
    assert tokens["r"] == tokens["twin"] == tokens_of(alone)["r"]
    assert tokens["x"] != tokens["r"]
    _, greedy_alone = run(tiny, Policy.SEQUENTIAL, 1, others)
    assert {name: tokens[name] for name in ("g0", "g1", "g2", "g3")} == tokens_of(greedy_alone)
