"""A tiny random Llama with SmolLM2's grouping of heads, and runs of it that keep every logit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from batchviz.engine import Engine
from batchviz.model import attention
from batchviz.model.load import LoadedModel, prepare_model
from batchviz.model.number_format import DTYPES
from batchviz.model.runner import PackedStep, TorchRunner
from batchviz.request import GREEDY, Request, SamplingParams
from batchviz.scheduler import Policy, ScheduledSequence, make_scheduler
from batchviz.trace import ModelRecord, StepSnapshot

VOCAB_SIZE = 384
CAPACITY = 768


def tiny_network(dtype: torch.dtype, seed: int = 0, implementation: str = attention.NAME) -> Any:
    """Two layers, 9 heads in 3 groups, head size 16; weights large enough that its answers vary."""
    attention.register()
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=144,
        intermediate_size=200,
        num_hidden_layers=2,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=2048,
        initializer_range=0.15,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        attn_implementation=implementation,
    )
    return LlamaForCausalLM(config).to(dtype).train(False)


def tiny_model(dtype: str) -> LoadedModel:
    record = ModelRecord("tiny", dtype, "cpu")
    return prepare_model(tiny_network(DTYPES[dtype]), None, record, torch.device("cpu"))


class WatchedRunner(TorchRunner):
    """Keeps every row of logits, by request, and every packed step."""

    def __init__(self, plain: TorchRunner) -> None:
        super().__init__(plain.network, plain._cache, float)
        self._plain = plain  # it holds the cache
        self.logits: dict[str, list[torch.Tensor]] = {}
        self.steps: list[PackedStep] = []

    def forward(self, step: PackedStep) -> torch.Tensor:
        logits = super().forward(step)
        self.steps.append(step)
        for row, work in enumerate(step.sampling):
            self.logits.setdefault(work.request_id, []).append(logits[row].clone())
        return logits


def watch(loaded: LoadedModel, num_slots: int, capacity: int = CAPACITY) -> WatchedRunner:
    return WatchedRunner(loaded.make_runner(num_slots, capacity, float))


def prompt_of(length: int, seed: int = 0) -> tuple[int, ...]:
    """Made-up token ids, 3 and above."""
    return tuple(3 + (seed * 101 + index * 37 + index * index * 5) % (VOCAB_SIZE - 3) for index in range(length))


def request(
    name: str, prompt: Sequence[int], max_tokens: int, *, stop: Sequence[int] = (), sampling: SamplingParams = GREEDY
) -> Request:
    return Request(name, tuple(prompt), max_tokens, 0, frozenset(stop), sampling=sampling)


def run(
    loaded: LoadedModel,
    policy: Policy,
    num_slots: int,
    requests: Sequence[Request],
    *,
    capacity: int = CAPACITY,
    before_step: Callable[[Engine], None] | None = None,
) -> tuple[WatchedRunner, list[StepSnapshot]]:
    """The real engine over the watched runner, to the end."""
    runner = watch(loaded, 1 if policy is Policy.SEQUENTIAL else num_slots, capacity)
    engine = Engine(make_scheduler(policy, num_slots), runner, slot_capacity=capacity)
    engine.add_all(requests)
    snapshots = []
    while engine.has_work:
        if before_step is not None:
            before_step(engine)
        snapshots.append(engine.step())
    return runner, snapshots


def tokens_of(snapshots: Sequence[StepSnapshot]) -> dict[str, list[int]]:
    """Every request's sampled tokens, in order."""
    tokens: dict[str, list[int]] = {}
    for snapshot in snapshots:
        for slot in snapshot.slots:
            if slot.token_id is not None and slot.request_id is not None:
                tokens.setdefault(slot.request_id, []).append(slot.token_id)
    return tokens


def reasons_of(snapshots: Sequence[StepSnapshot]) -> dict[str, str]:
    return {finish.request_id: str(finish.reason) for snapshot in snapshots for finish in snapshot.finished}


def same_bits(first: dict[str, list[torch.Tensor]], second: dict[str, list[torch.Tensor]]) -> bool:
    """Whether two runs gave every request the same logits, with ==."""
    return first.keys() == second.keys() and all(
        len(first[name]) == len(second[name]) and all(map(torch.equal, first[name], second[name])) for name in first
    )


def work(
    slot: int, token_ids: Sequence[int], start: int, *, prefill: bool = False, samples: bool = True, name: str = ""
) -> ScheduledSequence:
    """One line of a hand-made rota."""
    return ScheduledSequence(
        slot, name or f"s{slot}", tuple(token_ids), start, prefill, samples, 0, GREEDY, frozenset()
    )
