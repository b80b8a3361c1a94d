"""The file made for llama.cpp holds the same weights; where llama-cpp-python is installed, it gives the same answers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from batchviz.model.llama_cpp_peer import LlamaCpp, interleaved, write_gguf
from batchviz.model.load import load_model
from batchviz.model.peers import Own
from tests.model.tiny import tiny_network

pytestmark = pytest.mark.model

HAS_LLAMA_CPP = importlib.util.find_spec("llama_cpp") is not None


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    tiny_network(torch.float32).save_pretrained(folder)
    return folder


def test_the_file_holds_the_models_weights(tiny_folder: Path, tmp_path: Path) -> None:
    import gguf

    write_gguf(tiny_folder, tmp_path / "tiny.gguf")
    reader = gguf.GGUFReader(tmp_path / "tiny.gguf")
    found: dict[str, Any] = {
        tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors
    }
    state = tiny_network(torch.float32).state_dict()
    assert len(found) == 2 * 9 + 2  # tied: no head of its own
    for theirs, ours in (
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("model.layers.1.self_attn.v_proj", "blk.1.attn_v"),
        ("model.layers.0.mlp.down_proj", "blk.0.ffn_down"),
        ("model.layers.1.input_layernorm", "blk.1.attn_norm"),
    ):
        expected = state[f"{theirs}.weight"].numpy()
        assert found[f"{ours}.weight"].shape == expected.shape
        numpy.testing.assert_allclose(found[f"{ours}.weight"], expected, rtol=2**-8)
    key = interleaved(state["model.layers.0.self_attn.k_proj.weight"], 3).numpy()
    numpy.testing.assert_allclose(found["blk.0.attn_k.weight"], key, rtol=2**-8)


def test_halves_become_neighbours_within_each_head() -> None:
    weight = torch.arange(16.0).reshape(8, 2)  # two heads of four rows
    assert interleaved(weight, 2)[:, 0].tolist() == [0, 4, 2, 6, 8, 12, 10, 14]


@pytest.mark.skipif(not HAS_LLAMA_CPP, reason="llama-cpp-python is not installed")
def test_llama_cpp_answers_the_real_model_as_we_do(weights_folder: Path) -> None:
    loaded = load_model(dtype="float32", device="cpu")
    prompts = [loaded.encode_chat(text) for text in ("What is the capital of France?", "Name three fruits.", "Hi")]
    own, theirs = Own(loaded).answer(prompts, 6), LlamaCpp(str(weights_folder)).answer(prompts, 6)
    assert own[0] == theirs[0]
    pairs = [pair for mine, other in zip(own, theirs, strict=True) for pair in zip(mine, other, strict=True)]
    assert sum(mine == other for mine, other in pairs) >= 0.7 * len(pairs)  # BF16 weights against float32
