"""The headline: batched float32 answers of the real model are those of transformers' own `generate`, one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from batchviz.model.half_linear import row_unit
from batchviz.model.load import LoadedModel, load_model
from batchviz.model.number_format import FLOAT16_WEIGHTS, FLOAT32
from batchviz.scheduler import Policy
from tests.model.tiny import request, run, tokens_of

pytestmark = pytest.mark.model

NEAR_TIE = 1e-3  # two logits closer than this may be ordered either way by a sum taken in another order
NUM_TOKENS = 24
PROMPTS = (
    "Is the sky blue? Answer yes or no.",
    "Write a haiku about rain.",
    "What is 17 + 25?",
    "Name three fruits.",
    "Translate 'good morning' into French.",
    "Explain gravity to a child.",
    "def fibonacci(n):",
    "List the planets of the solar system in order.",
    "¿Cuál es la capital de España?",
    "写一句关于春天的话。",
    "Why do cats purr? 🐈",
    "",
    "x",
    (
        "Summarize: The trains were late, the coffee was cold, and yet everybody at the station was in a good mood, since "
        "a choir had started to sing on platform four and would not stop until the last delayed passenger had left."
    ),
    "Give me a JSON object with the keys name and age.",
    "Who wrote Hamlet?",
    "    indented\n\n\nlines\ttabs",
    "What comes after Monday?",
    "1, 1, 2, 3, 5, 8,",
    "Tell me a joke about a programmer and a goat, and then explain, step by step, why it is funny.",
)


@pytest.fixture(scope="module")
def reference(weights_folder: Path) -> Any:
    """The model as transformers runs it, without anything of ours."""
    return AutoModelForCausalLM.from_pretrained(weights_folder, dtype=torch.float32, attn_implementation="sdpa").train(
        False
    )


def test_twenty_prompts_get_the_tokens_of_generate(
    real32: LoadedModel, reference: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    encoded = [real32.encode_chat(prompt) for prompt in PROMPTS]
    requests = [request(str(i), ids, NUM_TOKENS, stop=sorted(real32.stop_token_ids)) for i, ids in enumerate(encoded)]
    _, snapshots = run(real32, Policy.CONTINUOUS, 8, requests, capacity=256)
    answers = tokens_of(snapshots)
    for index, ids in enumerate(encoded):
        expected = _generate(reference, ids)
        ours = answers[str(index)]
        if ours != expected:
            at = next(i for i, (a, b) in enumerate(zip(ours, expected, strict=False)) if a != b)
            gap = _top_two_gap(reference, (*ids, *expected[:at]))
            with capsys.disabled():
                print(f"\nprompt {index}: near tie at token {at}, top two logits {gap:.2g} apart")
            assert gap < NEAR_TIE, f"prompt {index} differs at token {at}: {ours[at:]} is not {expected[at:]}"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16_WEIGHTS])
def test_an_answer_of_the_real_model_is_the_same_bits_beside_anybody(real32: LoadedModel, dtype: str) -> None:
    if dtype == FLOAT16_WEIGHTS and row_unit() is None:
        pytest.skip("this machine keeps no weights in float16")
    real = real32 if dtype == FLOAT32 else load_model(dtype=dtype, device="cpu")
    chosen = [request(str(i), real.encode_chat(PROMPTS[i]), 8) for i in (0, 5, 13, 9)]
    chosen.append(request("long", real.encode_length(300, 1), 8))
    alone, first = run(real, Policy.SEQUENTIAL, 1, chosen, capacity=320)
    for policy, num_slots, order in ((Policy.STATIC, 4, chosen), (Policy.CONTINUOUS, 3, chosen[::-1])):
        batched, snapshots = run(real, policy, num_slots, order, capacity=320)
        assert tokens_of(snapshots) == tokens_of(first)
        for one in chosen:
            assert all(map(torch.equal, batched.logits[one.id], alone.logits[one.id]))


def test_the_sky_is_answered_in_three_tokens_and_a_stop(real32: LoadedModel) -> None:
    sky = request("sky", real32.encode_chat(PROMPTS[0]), 30, stop=sorted(real32.stop_token_ids))
    _, snapshots = run(real32, Policy.CONTINUOUS, 2, [sky], capacity=128)
    detokenizer = real32.make_detokenizer()
    ids = tokens_of(snapshots)["sky"]
    assert [detokenizer.push("sky", token, token == ids[-1]) for token in ids] == ["No", ".", ""]


def _generate(model: Any, ids: tuple[int, ...]) -> list[int]:
    prompt = torch.tensor([ids])
    with torch.inference_mode():
        output = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NUM_TOKENS, do_sample=False
        )
    generated: list[int] = output[0, len(ids) :].tolist()
    return generated


def _top_two_gap(model: Any, ids: tuple[int, ...]) -> float:
    with torch.inference_mode():
        first, second = model(torch.tensor([ids])).logits[0, -1].topk(2).values.tolist()
    return float(first - second)
