"""The plain forward pass computes what transformers' own class computes, for every member of the family that we take."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from batchviz.model import attention, compiled
from batchviz.model.arithmetic import TorchArithmetic
from batchviz.model.compiled import CompiledArithmetic
from batchviz.model.half_linear import HalfLinear, row_unit
from batchviz.model.linear import JoinedLinear, PackedLinear, can_pack
from batchviz.model.llama import PlainLlama
from batchviz.model.load import make_network
from batchviz.model.network import Network, TransformersNetwork
from batchviz.model.number_format import BFLOAT16, FLOAT16_WEIGHTS, FLOAT32, LinearKind
from batchviz.model.runner import TorchRunner
from tests.model.tiny import prompt_of, tiny_model, work

pytestmark = pytest.mark.model

CPU = torch.device("cpu")
MEMBERS: dict[str, dict[str, Any]] = {
    "grouped heads, tied head": {"tie_word_embeddings": True},
    "own head": {"tie_word_embeddings": False},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "every head its own keys": {"num_key_value_heads": 9},
    "one key head for all": {"num_key_value_heads": 1},
    "wide heads": {"head_dim": 32},
    "another activation": {"hidden_act": "gelu"},
    "stretched positions": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10_000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        }
    },
}


def member(settings: dict[str, Any], dtype: torch.dtype = torch.float32) -> Any:
    attention.register()
    torch.manual_seed(1)
    plain = {
        "vocab_size": 200,
        "hidden_size": 144,
        "intermediate_size": 200,
        "num_hidden_layers": 2,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "initializer_range": 0.15,
    }
    config = LlamaConfig(**(plain | settings), attn_implementation=attention.NAME)
    model = LlamaForCausalLM(config).to(dtype).train(False)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # norms and biases are ones and zeros until somebody trains them
                parameter.uniform_(-1, 1)
    return model


def transformers_network(model: Any) -> TransformersNetwork:
    return TransformersNetwork(model, PackedLinear.rows_for)


def logits_of(network: Network, like: Any) -> list[torch.Tensor]:
    """Prompts of two requests, then decoding beside a third that is read: a step of each kind."""
    cache = tiny_cache(like)
    runner = TorchRunner(network, cache, float)
    first, second, third = (tuple(token % 200 for token in prompt_of(n, n)) for n in (70, 9, 33))
    steps = (
        (work(0, first, 0, prefill=True), work(2, second, 0, prefill=True)),
        (work(0, (5,), 70), work(1, third, 0, prefill=True), work(2, (6,), 9)),
        (work(0, (7,), 71), work(1, (8,), 33), work(2, (9,), 10)),
        (work(1, (10,), 34),),
    )
    return [runner.forward(runner.pack(step)).float() for step in steps]


def tiny_cache(model: Any) -> Any:
    from batchviz.model.kv_cache import KVCache

    config = model.config
    return KVCache(
        num_layers=2,
        num_slots=3,
        num_heads=config.num_key_value_heads,
        capacity=128,
        head_dim=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        dtype=model.dtype,
        device=torch.device("cpu"),
    )


@pytest.mark.parametrize("name", MEMBERS)
def test_it_computes_what_transformers_computes(name: str) -> None:
    theirs = logits_of(transformers_network(member(MEMBERS[name])), member(MEMBERS[name]))
    ours = logits_of(make_network(member(MEMBERS[name]), CPU, FLOAT32), member(MEMBERS[name]))
    for mine, other in zip(ours, theirs, strict=True):
        assert other.abs().max() > 0.5  # so the tolerance means something
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in MEMBERS if name != "another activation"])
def test_the_compiled_loops_compute_what_torch_computes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "POSITIONS_A_THREAD", 1)
    model = member(MEMBERS[name])
    plain = PlainLlama(model, JoinedLinear, TorchArithmetic(model.model.layers[0].mlp.act_fn))
    theirs = logits_of(plain, member(MEMBERS[name]))
    for threads in (1, 2, 3):
        ours = logits_of(
            PlainLlama(member(MEMBERS[name]), JoinedLinear, CompiledArithmetic(threads)), member(MEMBERS[name])
        )
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def test_another_activation_than_silu_is_left_to_torch() -> None:
    network = make_network(member(MEMBERS["another activation"]), CPU, FLOAT32)
    assert isinstance(network, PlainLlama)
    assert isinstance(network.arithmetic, TorchArithmetic)


@pytest.mark.parametrize("name", MEMBERS)
def test_with_weights_in_float16_it_is_the_model_whose_weights_are_rounded_so(name: str) -> None:
    if row_unit() is None:
        pytest.skip("this machine keeps no weights in float16")
    rounded = member(MEMBERS[name])
    for module in rounded.modules():
        if isinstance(module, torch.nn.Linear):
            module.weight = torch.nn.Parameter(module.weight.half().float())
    theirs = logits_of(transformers_network(rounded), member(MEMBERS[name]))
    ours = logits_of(make_network(member(MEMBERS[name]), CPU, FLOAT16_WEIGHTS), member(MEMBERS[name]))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=2e-4)


def test_in_bfloat16_too() -> None:
    theirs = logits_of(transformers_network(member({}, torch.bfloat16)), member({}, torch.bfloat16))
    ours = logits_of(make_network(member({}, torch.bfloat16), CPU, BFLOAT16), member({}, torch.bfloat16))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0.1, atol=0.1 * float(other.abs().max()))


def test_layers_that_cannot_be_packed_compute_the_same() -> None:
    packed = logits_of(PlainLlama(member({}), PackedLinear, CompiledArithmetic(2)), member({}))
    plain = logits_of(PlainLlama(member({}), JoinedLinear, CompiledArithmetic(2)), member({}))
    for mine, other in zip(packed, plain, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make_linear", [PackedLinear, JoinedLinear, HalfLinear])
def test_joined_layers_are_the_layers_side_by_side_and_a_residual_is_added(make_linear: LinearKind) -> None:
    if make_linear is PackedLinear and not can_pack(CPU, torch.float32):
        pytest.skip("this machine packs no weights")
    if make_linear is HalfLinear and row_unit() is None:
        pytest.skip("this machine keeps no weights in float16")
    torch.manual_seed(2)
    linears = [torch.nn.Linear(32, 8), torch.nn.Linear(32, 16, bias=False)]
    rows, residual = torch.randn(1, 5, 32), torch.randn(1, 5, 24)
    with torch.inference_mode():
        expected = torch.cat([linear(rows) for linear in linears], dim=-1)
        layer = make_linear(*linears)
        tolerance = {"rtol": 1e-3, "atol": 1e-3} if make_linear is HalfLinear else {}
        torch.testing.assert_close(layer(rows), expected, **tolerance)
        torch.testing.assert_close(layer(rows, residual.clone()), expected + residual, **tolerance)
        assert layer(rows[:, :0]).shape == (1, 0, 24)


def test_the_models_own_layers_are_let_go(tiny32: Any) -> None:
    network = make_network(member({}), CPU, FLOAT32)
    assert isinstance(network, PlainLlama)
    assert not any(isinstance(module, torch.nn.Linear) for module in network.modules())


def test_other_families_go_through_transformers_own_code() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    config = MistralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation=attention.NAME,
    )  # fmt: skip
    assert isinstance(make_network(MistralForCausalLM(config), CPU, FLOAT32), TransformersNetwork)


def test_the_tiny_model_of_the_tests_is_a_plain_one() -> None:
    assert isinstance(tiny_model(FLOAT32).network, PlainLlama)
