"""A runner that remembers, for every step, which tokens were likely.

Owns: WatchedRunner. Must not know: debugging sessions, pages, how a token is chosen. It looks at logits and leaves them alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from batchviz.model.runner import PackedStep, TorchRunner
from batchviz.runner import RunnerOutput
from batchviz.scheduler import SchedulerOutput

NUM_KEPT = 10


class Likely(NamedTuple):
    """A token and how likely it is, 0 to 1, at temperature 1."""

    token_id: int
    probability: float


class WatchedRunner:
    """Around a TorchRunner: `steps` has one entry a step, slot -> its likeliest tokens, the likeliest first."""

    def __init__(self, runner: TorchRunner) -> None:
        self._runner = runner
        self._forward = runner.forward
        runner.forward = self._look  # type: ignore[method-assign]
        self._seen: dict[int, tuple[Likely, ...]] = {}
        self.steps: list[dict[int, tuple[Likely, ...]]] = []

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput:
        self._seen = {}
        output = self._runner.execute(scheduled)
        self.steps.append(self._seen)
        return output

    def _look(self, step: PackedStep) -> torch.Tensor:
        logits = self._forward(step)
        likely = torch.softmax(logits.float(), dim=-1).topk(min(NUM_KEPT, logits.shape[-1]), dim=-1)
        for work, ids, shares in zip(step.sampling, likely.indices.tolist(), likely.values.tolist(), strict=True):
            self._seen[work.slot] = tuple(map(Likely, ids, shares))
        return logits
