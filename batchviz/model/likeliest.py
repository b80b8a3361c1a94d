"""A runner that remembers, for every step, which tokens were likely and where the time went.

Owns: WatchedRunner. Must not know: debugging sessions, pages, how a token is chosen. It looks at logits and leaves them alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from batchviz.model.llama import PlainLlama
from batchviz.model.runner import PackedStep, TorchRunner
from batchviz.model.split import where_time_goes
from batchviz.runner import RunnerOutput
from batchviz.scheduler import SchedulerOutput

NUM_KEPT = 10


class Likely(NamedTuple):
    """A token and how likely it is, 0 to 1, at temperature 1."""

    token_id: int
    probability: float


class Watched(NamedTuple):
    """Of one step: slot -> its likeliest tokens, the likeliest first; seconds in linear layers and in attention.

    Seconds are None where the network is not ours to look into, or where work goes on after a call has returned (a GPU).
    """

    likely: dict[int, tuple[Likely, ...]]
    linear_s: float | None
    attention_s: float | None


class WatchedRunner:
    """Around a TorchRunner: `steps` has one entry a step."""

    def __init__(self, runner: TorchRunner) -> None:
        self._runner = runner
        self._forward = runner.forward
        runner.forward = self._look  # type: ignore[method-assign]
        self._likely: dict[int, tuple[Likely, ...]] = {}
        self._spent: dict[str, float] = {}
        self.steps: list[Watched] = []

    def execute(self, scheduled: SchedulerOutput) -> RunnerOutput:
        self._likely, self._spent = {}, {}
        output = self._runner.execute(scheduled)
        self.steps.append(Watched(self._likely, self._spent.get("linear"), self._spent.get("attention")))
        return output

    def _look(self, step: PackedStep) -> torch.Tensor:
        logits = self._timed(step)
        likely = torch.softmax(logits.float(), dim=-1).topk(min(NUM_KEPT, logits.shape[-1]), dim=-1)
        for work, ids, shares in zip(step.sampling, likely.indices.tolist(), likely.values.tolist(), strict=True):
            self._likely[work.slot] = tuple(map(Likely, ids, shares))
        return logits

    def _timed(self, step: PackedStep) -> torch.Tensor:
        network = self._runner.network
        if not isinstance(network, PlainLlama) or step.token_ids.device.type != "cpu":
            return self._forward(step)
        with where_time_goes(network, self._runner.clock) as self._spent:
            return self._forward(step)
