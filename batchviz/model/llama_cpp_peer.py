"""llama.cpp as a peer, through the low-level batch interface of llama-cpp-python, where that is installed.

Owns: a GGUF file in BF16 made from the same weights, and the loop that decodes a batch. Must not know: how measurements
are repeated or compared. The high-level interface of llama-cpp-python has no batches, so it would be no fair peer.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import torch

BATCH_TOKENS = 512  # of a prompt, decoded at once; llama.cpp's own default
NO_VOCABULARY = "no_vocab"  # tokens go in and out as numbers
NORMS = ("input_layernorm", "post_attention_layernorm")
NAMES = (
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
    (NORMS[0], "attn_norm"),
    (NORMS[1], "ffn_norm"),
)


class LlamaCppError(RuntimeError):
    """llama.cpp refused something. The message is one sentence."""


class LlamaCpp:
    """`llama_decode` over a batch with a sequence for each prompt; greedy, with as many threads as torch has."""

    name = "llama_cpp"

    def __init__(self, source: str) -> None:
        import llama_cpp

        self._api = llama_cpp
        self._quiet = llama_cpp.llama_log_callback(lambda *_: None)  # kept: the library holds on to it
        llama_cpp.llama_log_set(self._quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "weights.gguf"
            write_gguf(Path(source), file)
            settings = llama_cpp.llama_model_default_params()
            settings.use_mmap = False  # the file goes away
            self._model = llama_cpp.llama_model_load_from_file(str(file).encode(), settings)
        if not self._model:
            raise LlamaCppError("llama.cpp could not load the file made from the weights")
        self._vocab_size: int = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))

    def answer(self, prompts: Sequence[tuple[int, ...]], num_tokens: int) -> list[list[int]]:
        """See peers.Peer."""
        api = self._api
        settings = api.llama_context_default_params()
        settings.n_ctx = len(prompts) * (max(map(len, prompts)) + num_tokens)
        settings.n_batch = settings.n_ubatch = max(BATCH_TOKENS, len(prompts))
        settings.n_seq_max = len(prompts)
        settings.n_threads = settings.n_threads_batch = torch.get_num_threads()
        settings.kv_unified = True
        settings.no_perf = True
        context = api.llama_init_from_model(self._model, settings)
        if not context:
            raise LlamaCppError(f"llama.cpp could not make a context for {len(prompts)} sequences")
        batch = api.llama_batch_init(settings.n_batch, 0, 1)
        try:
            answers = [[token] for token in self._read(context, batch, prompts, settings.n_batch)]
            for index in range(num_tokens - 1):
                rows = [
                    (answer[-1], len(prompt) + index, sequence, True)
                    for sequence, (prompt, answer) in enumerate(zip(prompts, answers, strict=True))
                ]
                for sequence, token in self._decode(context, batch, rows):
                    answers[sequence].append(token)
            return answers
        finally:
            api.llama_batch_free(batch)
            api.llama_free(context)

    def _read(self, context: Any, batch: Any, prompts: Sequence[tuple[int, ...]], room: int) -> list[int]:
        """All prompts, as many tokens at once as a batch holds. Returns the first token of each answer."""
        rows = [
            (token, position, sequence, position == len(prompt) - 1)
            for sequence, prompt in enumerate(prompts)
            for position, token in enumerate(prompt)
        ]
        first: dict[int, int] = {}
        for start in range(0, len(rows), room):
            first.update(self._decode(context, batch, rows[start : start + room]))
        return [first[sequence] for sequence in range(len(prompts))]

    def _decode(self, context: Any, batch: Any, rows: Sequence[tuple[int, int, int, bool]]) -> list[tuple[int, int]]:
        """Rows of (token, position, sequence, is sampled). Returns (sequence, most likely token) of the sampled ones."""
        batch.n_tokens = len(rows)
        for row, (token, position, sequence, is_sampled) in enumerate(rows):
            batch.token[row], batch.pos[row], batch.n_seq_id[row] = token, position, 1
            batch.seq_id[row][0], batch.logits[row] = sequence, is_sampled
        code = self._api.llama_decode(context, batch)
        if code != 0:
            raise LlamaCppError(f"llama.cpp could not decode a batch of {len(rows)} tokens (code {code})")
        found = []
        for row, (_, _, sequence, is_sampled) in enumerate(rows):
            if is_sampled:
                logits = numpy.ctypeslib.as_array(
                    self._api.llama_get_logits_ith(context, row), shape=(self._vocab_size,)
                )
                found.append((sequence, int(logits.argmax())))
        return found


def write_gguf(folder: Path, target: Path) -> None:
    """A Llama model of transformers, in `folder`, as a GGUF file: weights in BF16, norms in float32, no vocabulary."""
    import gguf
    from safetensors.torch import load_file
    from transformers import AutoConfig

    config: Any = AutoConfig.from_pretrained(folder, local_files_only=True)
    tensors = load_file(folder / "model.safetensors")
    writer = gguf.GGUFWriter(target, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model(NO_VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)

    def add(name: str, tensor: torch.Tensor) -> None:
        values = tensor.float().numpy()
        kind = gguf.GGMLQuantizationType.F32 if values.ndim == 1 else gguf.GGMLQuantizationType.BF16
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)

    add("token_embd", tensors["model.embed_tokens.weight"])
    add("output_norm", tensors["model.norm.weight"])
    if not config.tie_word_embeddings:
        add("output", tensors["lm_head.weight"])
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for layer in range(config.num_hidden_layers):
        for theirs, ours in NAMES:
            tensor = tensors[f"model.layers.{layer}.{theirs}.weight"]
            add(f"blk.{layer}.{ours}", interleaved(tensor, heads[ours]) if ours in heads else tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def interleaved(weight: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Rows in the order of llama.cpp, which turns neighbours (0, 1), where transformers turns halves (0, n/2)."""
    return weight.reshape(num_heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
