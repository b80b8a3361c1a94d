"""The real model as a runner: one forward pass a step, for all slots.

Owns: packing a step into one row, running the model once, choosing tokens. Must not know: queues, policies, texts.

The packed row, [1, rows], holds one token of every decoding slot, in slot order, then the prompts, one after the other,
then a few dummy tokens where the network wants them: a row that stands alone may go through other kernels than one in
company, and a batch must not change an answer by a bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from batchviz.model.attention_plan import AttentionPlan, Piece, PromptPlan, plan_decode, plan_prompt
from batchviz.model.kv_cache import KVCache
from batchviz.model.network import Network
from batchviz.model.sampling import are_finite, greedy, sample, without
from batchviz.runner import NO_ERRORS, RunnerOutput
from batchviz.scheduler import ScheduledSequence, SchedulerOutput

NOT_FINITE = "the model's logits are not finite numbers"


class PackedStep(NamedTuple):
    """A step as the model sees it: [1, rows] tokens and positions, and which rows a token is sampled after."""

    token_ids: torch.Tensor
    positions: torch.Tensor
    sampled_rows: torch.Tensor  # [samples], and dummies as the network wants them
    sampling: tuple[ScheduledSequence, ...]  # whose rows these are
    num_dummy_rows: int
    attention: AttentionPlan


class TorchRunner:
    """Runs a network over the slots of one cache. `clock` returns seconds."""

    def __init__(self, network: Network, cache: KVCache, clock: Callable[[], float]) -> None:
        self.network = network
        self._cache = cache
        self.clock = clock
        self._device = cache.keys.device
        self._dtype = cache.keys.dtype

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput:
        """One step. A slot whose logits are not finite is named in `errors`; its neighbours get their tokens."""
        if not scheduled.scheduled:
            return RunnerOutput({}, 0.0, 0.0, 0)
        started_s = self.clock()
        step = self.pack(scheduled.scheduled)
        logits = self.forward(step)
        forwarded_s = self.clock()
        token_ids, errors = self._choose(logits, step.sampling)
        return RunnerOutput(
            token_ids=token_ids,
            forward_s=forwarded_s - started_s,
            sample_s=self.clock() - forwarded_s,
            num_rows=step.attention.num_rows,
            num_dummy_rows=step.num_dummy_rows,
            errors=errors,
        )

    def pack(self, scheduled: tuple[ScheduledSequence, ...]) -> PackedStep:
        """Lays the step's tokens out in one row and plans their attention."""
        decoding = [work for work in scheduled if not work.is_prefill]
        reading = [work for work in scheduled if work.is_prefill]
        token_ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        last_rows: dict[int, int] = {}
        pieces: list[Piece] = []
        prompts: list[PromptPlan] = []
        decode = plan_decode(
            [work.slot for work in decoding], [work.start_position for work in decoding], self._device, self._dtype
        )
        for work in (*decoding, *reading):
            length = len(work.token_ids)
            if work.is_prefill:
                prompts += plan_prompt(
                    work.slot, len(token_ids), work.start_position, length, self._device, self._dtype
                )
                window = prompts[-1].window
            else:
                window = decode.window if decode else 0
            self._cache.prepare(work.slot, work.start_position, work.start_position + length, window)
            pieces.append(Piece(work.slot, len(token_ids), length, work.start_position))
            token_ids += work.token_ids
            positions += range(work.start_position, work.start_position + length)
            slots += [work.slot] * length
            last_rows[work.slot] = len(token_ids) - 1

        num_rows = len(token_ids)
        num_dummy_rows = self.network.rows_for(num_rows) - num_rows
        sampling = tuple(work for work in scheduled if work.samples)
        sampled_rows = [last_rows[work.slot] for work in sampling]
        if sampled_rows:
            sampled_rows += sampled_rows[:1] * (self.network.rows_for(len(sampled_rows)) - len(sampled_rows))
        return PackedStep(
            token_ids=self._tensor(token_ids + token_ids[:1] * num_dummy_rows)[None],
            positions=self._tensor(positions + [0] * num_dummy_rows)[None],
            sampled_rows=self._tensor(sampled_rows),
            sampling=sampling,
            num_dummy_rows=num_dummy_rows,
            attention=AttentionPlan(
                cache=self._cache,
                num_rows=num_rows,
                row_slots=np.array(slots, np.int64),
                row_positions=np.array(positions, np.int64),
                num_positions=sum(positions) + num_rows,
                cache_rows=self._cache.row_indices(self._tensor(slots), self._tensor(positions)),
                pieces=tuple(pieces),
                decode=decode,
                prompts=tuple(prompts),
            ),
        )

    def forward(self, step: PackedStep) -> torch.Tensor:
        """The forward pass. Returns logits, [samples, vocab], in the order of `step.sampling`."""
        with torch.inference_mode():
            logits = self.network(step.token_ids, step.positions, step.sampled_rows, step.attention)
            logits = logits[: len(step.sampling)]
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return logits

    def _choose(
        self, logits: torch.Tensor, sampling: tuple[ScheduledSequence, ...]
    ) -> tuple[dict[int, int], dict[int, str]]:
        """A token for each row; rows that need more than the most likely token are looked at one by one."""
        if not sampling:
            return {}, dict(NO_ERRORS)
        with torch.inference_mode():
            finite, best = are_finite(logits), greedy(logits)
            token_ids: dict[int, int] = {}
            errors: dict[int, str] = {}
            for row, work in enumerate(sampling):
                if not finite[row]:
                    errors[work.slot] = NOT_FINITE
                elif work.sampling.temperature <= 0 and best[row] not in work.masked_token_ids:
                    token_ids[work.slot] = best[row]
                else:
                    token_ids[work.slot] = sample(
                        without(logits[row], work.masked_token_ids), work.sampling, work.output_index
                    )
        return token_ids, errors

    def _tensor(self, numbers: list[int]) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)
