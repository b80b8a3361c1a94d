"""What is loaded says what it is; what cannot be loaded is said in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from batchviz.model import attention
from batchviz.model.bench import measure_steps
from batchviz.model.device import choose_device
from batchviz.model.half_linear import HalfLinear, row_unit
from batchviz.model.linear import JoinedLinear, PackedLinear, can_pack
from batchviz.model.load import LoadedModel, _max_positions, load_model, prepare_model
from batchviz.model.number_format import DTYPES, FLOAT16_WEIGHTS, FLOAT32
from batchviz.model.split import linear_layers
from batchviz.scheduler import Policy
from batchviz.trace import ModelRecord
from tests.model.tiny import VOCAB_SIZE, request, run, tiny_network, tokens_of

pytestmark = pytest.mark.model


def test_the_default_model_says_what_it_is(real32: LoadedModel) -> None:
    record = real32.record
    assert (record.name, record.dtype, record.device) == ("SmolLM2-135M-Instruct", "float32", "cpu")
    assert record.sha256 is not None
    assert len(record.sha256) == 64
    assert "4-bit" in record.note
    assert record.exact is not None
    assert record.exact_note
    assert real32.stop_token_ids == {2} == set(record.stop_token_ids)
    assert (real32.vocab_size, real32.max_positions) == (49152, 8192)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"device": "abacus"}, "device 'abacus' is unknown; there are cuda, mps, cpu"),
        ({"device": "mps"}, "no device 'mps'"),
        ({"dtype": "int7"}, "dtype 'int7' is unknown; there are float32, bfloat16, float16-weights"),
        ({"num_threads": 0}, "0 threads"),
    ],
)
def test_what_is_unknown_is_refused_before_anything_is_loaded(arguments: dict[str, str | int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load_model(**arguments)  # type: ignore[arg-type]


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        load_model(str(tmp_path))


def test_a_name_that_nobody_knows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="'no-such/model' could not be loaded") as caught:
        load_model("no-such/model")
    assert "\n" not in str(caught.value)


def test_a_local_folder_is_a_model(tmp_path: Path, weights_folder: Path) -> None:
    tiny_network(torch.float32).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        (tmp_path / name).write_bytes((weights_folder / name).read_bytes())
    loaded = load_model(str(tmp_path), dtype="float32", device="cpu")
    assert (loaded.record.name, loaded.record.note, loaded.vocab_size) == (str(tmp_path), "", VOCAB_SIZE)
    assert loaded.record.sha256 is not None


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16_WEIGHTS])
def test_another_architecture_with_biases_is_batched_exactly(dtype: str) -> None:
    if dtype == FLOAT16_WEIGHTS and row_unit() is None:
        pytest.skip("this machine keeps no weights in float16")
    torch.manual_seed(1)
    attention.register()
    config = Qwen2Config(
        vocab_size=300, hidden_size=64, intermediate_size=90, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, initializer_range=0.2, attn_implementation=attention.NAME,
    )  # fmt: skip
    record = ModelRecord("qwen", dtype, "cpu")
    loaded = prepare_model(Qwen2ForCausalLM(config).train(False), None, record, torch.device("cpu"))
    requests = [request(f"r{i}", [3 + i, 5, 7 * i + 1], 6) for i in range(4)]
    _, alone = run(loaded, Policy.SEQUENTIAL, 1, requests)
    _, batched = run(loaded, Policy.CONTINUOUS, 3, requests)
    assert tokens_of(alone) == tokens_of(batched)
    assert loaded.record.exact


def test_beyond_where_longrope_turns_all_alike_no_sequence_goes() -> None:
    config = LlamaConfig(max_position_embeddings=4096)
    assert _max_positions(config) == 4096
    config.rope_parameters = {"rope_type": "longrope", "original_max_position_embeddings": 512}
    assert _max_positions(config) == 512


@pytest.mark.parametrize(
    "settings",
    [
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0, "partial_rotary_factor": 0.5}},
        {"num_attention_heads": 4, "num_key_value_heads": 3},
        {"head_dim": 3},
    ],
    ids=["half turned", "heads left over", "odd heads"],
)
def test_heads_that_the_loops_do_not_fit_are_refused(settings: dict[str, object]) -> None:
    attention.register()
    plain = {
        "vocab_size": 64,
        "hidden_size": 64,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
    }
    config = LlamaConfig(**(plain | settings), attn_implementation=attention.NAME)
    with pytest.raises(ValueError, match="cannot be batched by slot"):
        prepare_model(LlamaForCausalLM(config), None, ModelRecord("x", FLOAT32, "cpu"), torch.device("cpu"))


def test_a_model_without_our_attention_is_refused() -> None:
    network = tiny_network(torch.float32, implementation="sdpa")
    with pytest.raises(ValueError, match="cannot be batched by slot"):
        prepare_model(network, None, ModelRecord("x", "float32", "cpu"), torch.device("cpu"))


def test_learned_positions_work_too() -> None:
    torch.manual_seed(2)
    attention.register()
    config = GPT2Config(
        vocab_size=200, n_embd=48, n_layer=2, n_head=3, n_positions=600, initializer_range=0.2,
        attn_implementation=attention.NAME,
    )  # fmt: skip
    loaded = prepare_model(
        GPT2LMHeadModel(config).train(False), None, ModelRecord("gpt2", "float32", "cpu"), torch.device("cpu")
    )
    requests = [request(f"r{i}", [3 + i, 5, 7 * i + 1], 6) for i in range(4)]
    _, alone = run(loaded, Policy.SEQUENTIAL, 1, requests, capacity=64)
    _, batched = run(loaded, Policy.CONTINUOUS, 3, requests, capacity=64)
    assert tokens_of(alone) == tokens_of(batched)


def test_without_a_tokenizer_texts_are_refused() -> None:
    loaded = prepare_model(tiny_network(torch.float32), None, ModelRecord("x", "float32", "cpu"), torch.device("cpu"))
    with pytest.raises(ValueError, match="has no tokenizer"):
        loaded.encode_chat("hello")


def test_linears_are_packed_where_the_machine_can(tiny: LoadedModel) -> None:
    kinds = {type(layer) for layer in linear_layers(tiny.network)}  # type: ignore[arg-type]
    assert len(linear_layers(tiny.network)) == 9  # type: ignore[arg-type]
    if tiny.record.dtype == FLOAT16_WEIGHTS:
        assert kinds == {HalfLinear}
    else:
        assert kinds == {PackedLinear if can_pack(torch.device("cpu"), DTYPES[tiny.record.dtype]) else JoinedLinear}


def test_a_device_is_found() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device().type in ("cuda", "mps", "cpu")


def test_a_step_of_eight_costs_far_less_than_eight_steps_of_one(real32: LoadedModel) -> None:
    one, eight = measure_steps(real32, (1, 8), repeats=5)
    assert (one.batch_size, eight.batch_size) == (1, 8)
    assert eight.fastest_s < 4 * one.fastest_s
    assert eight.tokens_per_s == pytest.approx(8 / eight.median_s)
    assert one.times_one == 1
    with pytest.raises(ValueError, match="at least 1"):
        measure_steps(real32, ())
