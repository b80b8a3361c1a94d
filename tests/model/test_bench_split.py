"""Where a step's time goes: the parts are the parts of the step, and watching leaves the network as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from batchviz.model.bench import Limit, StepSplit, measure_limit, measure_split
from batchviz.model.load import LoadedModel, prepare_model
from batchviz.trace import ModelRecord

pytestmark = pytest.mark.model


def test_the_parts_are_within_the_step_and_the_network_is_left_as_it_was(tiny32: LoadedModel) -> None:
    network: Any = tiny32.network
    attend = network.attend
    split = measure_split(tiny32, 3, Limit(1e9, 1e9), position=100, repeats=3)
    assert split is not None
    assert 0 < split.linear_s < split.median_s
    assert 0 < split.attention_s < split.median_s
    assert network.attend == attend
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())
    plain = split.to_plain()
    assert plain["slots"] == 3
    assert plain["limit_pct"] == pytest.approx(100 * split.limit_s / split.median_s, abs=0.1)


def test_the_limit_counts_every_weight_once_and_each_sequences_keys(tiny32: LoadedModel) -> None:
    layer = (9 + 2 * 3) * 16 * 144 + 144 * 144 + 3 * 200 * 144
    weights = 2 * layer + 384 * 144
    kv = 2 * 2 * 3 * 16 * 4  # keys and values, layers, heads, head size, bytes
    assert tiny32.kv_bytes_per_token == kv
    by_memory = measure_split(tiny32, 2, Limit(1.0, 1e30), position=99, repeats=1)
    by_arithmetic = measure_split(tiny32, 2, Limit(1e30, 1.0), position=99, repeats=1)
    assert by_memory is not None
    assert by_arithmetic is not None
    assert by_memory.limit_s == 4 * weights + 2 * 100 * kv
    assert by_arithmetic.limit_s == 2 * weights * 2


def test_what_is_left_is_never_less_than_nothing() -> None:
    assert StepSplit(1, 1.0, 0.7, 0.5, 0.1).rest_s == 0
    assert StepSplit(1, 1.0, 0.5, 0.2, 0.1).rest_s == pytest.approx(0.3)


def test_a_model_that_runs_through_transformers_own_code_has_no_split() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    from batchviz.model import attention

    attention.register()
    config = MistralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation=attention.NAME,
    )  # fmt: skip
    loaded = prepare_model(MistralForCausalLM(config), None, ModelRecord("m", "float32", "cpu"), torch.device("cpu"))
    assert measure_split(loaded, 2, Limit(1, 1)) is None


def test_the_limits_of_this_machine_are_numbers_above_nothing() -> None:
    limit = measure_limit(repeats=1)
    assert limit.read_bytes_per_s > 1e8
    assert limit.multiply_flop_per_s > 1e8
