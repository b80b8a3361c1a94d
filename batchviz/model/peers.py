"""Engines to be measured against: the same model, the same prompts, the same number of forced tokens.

Owns: Peer, and one class an engine. Must not know: how measurements are repeated, compared or printed. A peer is set up
as its own documents say it is fastest on a processor; what is timed is one call that answers all prompts.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from transformers.utils import logging

from batchviz.engine import Engine
from batchviz.model.llama_cpp_peer import LlamaCpp
from batchviz.model.load import LoadedModel
from batchviz.model.quiet import quiet_transformers
from batchviz.request import Request
from batchviz.runner import Detokenizer
from batchviz.scheduler import Policy, make_scheduler

Prompts = Sequence[tuple[int, ...]]
NO_END = -1  # an end token that no vocabulary has
PAGE = 64  # KV positions a block


class PeerError(ValueError):
    """A peer that cannot be measured here. The message is one sentence."""


class Peer(Protocol):
    """Something that answers prompts."""

    name: str

    def answer(self, prompts: Prompts, num_tokens: int) -> list[list[int]]:
        """Exactly so many tokens for each prompt, all prompts in one batch."""
        ...


class Own:
    """This project's engine: continuous batching, a slot for each prompt, snapshots kept."""

    def __init__(
        self,
        loaded: LoadedModel,
        make_detokenizer: Callable[[], Detokenizer] | None = None,
        name: str = "batchviz",
    ) -> None:
        self.name = name
        self._loaded = loaded
        self._make_detokenizer = make_detokenizer
        self.outside_s = 0.0  # of the last answer: what was neither forward pass nor sampling
        self.duration_s = 0.0

    def answer(self, prompts: Prompts, num_tokens: int) -> list[list[int]]:
        started_s = perf_counter()
        capacity = max(map(len, prompts)) + num_tokens
        engine = Engine(
            make_scheduler(Policy.CONTINUOUS, len(prompts)),
            self._loaded.make_runner(len(prompts), capacity, perf_counter),
            slot_capacity=capacity,
            detokenizer=self._make_detokenizer() if self._make_detokenizer is not None else None,
            clock=perf_counter,
        )
        engine.add_all(Request(f"r{i}", ids, num_tokens, output_tokens=num_tokens) for i, ids in enumerate(prompts))
        steps = engine.run()
        self.duration_s = perf_counter() - started_s
        self.outside_s = self.duration_s - sum(step.forward_s + step.sample_s for step in steps)
        answers: list[list[int]] = [[] for _ in prompts]
        for step in steps:
            for slot in step.slots:
                if slot.request_id is not None and slot.token_id is not None:
                    answers[int(slot.request_id[1:])].append(slot.token_id)
        return answers


class Generate:
    """`generate` of transformers: a static batch, padded on the left, sdpa attention."""

    name = "generate"

    def __init__(self, model: Any) -> None:
        self._model = model

    def answer(self, prompts: Prompts, num_tokens: int) -> list[list[int]]:
        longest = max(map(len, prompts))
        rows = torch.tensor([[0] * (longest - len(ids)) + list(ids) for ids in prompts])
        mask = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts])
        settings = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=num_tokens, min_new_tokens=num_tokens, do_sample=False, pad_token_id=0, eos_token_id=None
        )
        with torch.inference_mode():
            found = self._model.generate(rows, attention_mask=mask, generation_config=settings)
        return [row[longest:].tolist() for row in found]


class GenerateBatch:
    """Continuous batching of transformers, its cache and its step cut to what this workload needs."""

    name = "generate_batch"

    def __init__(self, model: Any) -> None:
        self._model = model

    def answer(self, prompts: Prompts, num_tokens: int) -> list[list[int]]:
        from transformers.generation.configuration_utils import ContinuousBatchingConfig

        longest = max(map(len, prompts))
        blocks = len(prompts) * (-(-(longest + num_tokens) // PAGE) + 1)
        settings = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=num_tokens, do_sample=False, eos_token_id=NO_END, pad_token_id=0
        )
        memory = ContinuousBatchingConfig(
            num_blocks=max(2 * blocks, 16),
            page_size=PAGE,
            max_batch_tokens=max(512, len(prompts)),
            max_requests_per_batch=len(prompts),
            allow_block_sharing=False,
        )
        with torch.inference_mode():
            found = self._model.generate_batch(
                [list(ids) for ids in prompts],
                generation_config=settings,
                continuous_batching_config=memory,
                progress_bar=False,
            )
        ordered = sorted(found.values(), key=lambda output: int(str(output.request_id).rpartition("_")[2]))
        return [list(output.generated_tokens) for output in ordered]


def plain_model(source: str, dtype: torch.dtype) -> Any:
    """The model as transformers runs it by default on a processor."""
    with quiet_transformers(logging):
        model = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype, attn_implementation="sdpa", local_files_only=True
        )
    return model.train(False).requires_grad_(False)


def make_peers(names: Sequence[str], source: str, dtype: torch.dtype) -> tuple[list[Peer], list[str]]:
    """The peers of these names, and a sentence for each that cannot be measured here. Raises PeerError for an unknown one."""
    known = ("generate", "generate_batch", "llama_cpp")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PeerError(f"{unknown[0]!r} is not a peer; there are {', '.join(known)}")
    peers: list[Peer] = []
    missing: list[str] = []
    model = plain_model(source, dtype) if set(names) & {"generate", "generate_batch"} else None
    for name in names:
        if name == "generate":
            peers.append(Generate(model))
        elif name == "generate_batch":
            peers.append(GenerateBatch(model))
        elif importlib.util.find_spec("llama_cpp") is None:
            missing.append("llama_cpp is left out: llama-cpp-python is not installed")
        else:
            peers.append(LlamaCpp(source))
    return peers, missing
