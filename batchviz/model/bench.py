"""What one step costs at several batch sizes, where the time goes, and what this machine could do at most.

Owns: the measurements. Must not know: printing, files, policies, other engines.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from batchviz.model.llama import PlainLlama
from batchviz.model.load import LoadedModel
from batchviz.model.runner import TorchRunner
from batchviz.model.split import linear_layers, where_time_goes
from batchviz.request import GREEDY
from batchviz.scheduler import ScheduledSequence, SchedulerOutput

READ_BYTES = 256 * 2**20
SQUARE = 1_024


class Limit(NamedTuple):
    """What this machine does at most, measured now, with as many threads as the model has."""

    read_bytes_per_s: float
    multiply_flop_per_s: float

    def step_s(self, num_bytes: float, flop: float) -> float:
        """No step that reads so many bytes and does so many operations can take less than this."""
        return max(num_bytes / self.read_bytes_per_s, flop / self.multiply_flop_per_s)


class StepSplit(NamedTuple):
    """A decode step of `batch_size` sequences, in seconds: medians, so the parts need not add up to the step exactly."""

    batch_size: int
    median_s: float
    linear_s: float
    attention_s: float
    limit_s: float

    @property
    def rest_s(self) -> float:
        return max(self.median_s - self.linear_s - self.attention_s, 0.0)

    def to_plain(self) -> dict[str, float | int]:
        """In milliseconds, ready for `json.dumps`."""
        parts = {"ms": self.median_s, "linear_ms": self.linear_s, "attention_ms": self.attention_s}
        parts |= {"rest_ms": self.rest_s, "limit_ms": self.limit_s}
        plain = {name: round(1000 * seconds, 2) for name, seconds in parts.items()}
        return {"slots": self.batch_size} | plain | {"limit_pct": round(100 * self.limit_s / self.median_s, 1)}


class StepTiming(NamedTuple):
    """A decode step of `batch_size` sequences, in seconds. `times_one` compares its median with the first size's."""

    batch_size: int
    median_s: float
    fastest_s: float
    tokens_per_s: float
    times_one: float


def measure_steps(
    loaded: LoadedModel,
    batch_sizes: Sequence[int] = (1, 2, 4, 8, 16),
    *,
    position: int = 160,
    repeats: int = 9,
    clock: Callable[[], float] = time.perf_counter,
) -> list[StepTiming]:
    """Times decode steps at a given position of every sequence. The sizes alternate, so that a slow moment hits all.

    One cache of the largest size serves all; each size has a step of warm-up. Raises ValueError on an empty list or a
    size under 1.
    """
    if not batch_sizes or min(batch_sizes) < 1:
        raise ValueError("measuring needs batch sizes of at least 1")
    runner = loaded.make_runner(max(batch_sizes), position + 1, clock)
    seconds: dict[int, list[float]] = {size: [] for size in batch_sizes}
    for repeat in range(repeats + 1):
        for size, measured in seconds.items():
            duration_s = _step_s(runner, size, position, clock)
            if repeat > 0:
                measured.append(duration_s)
    medians = {size: statistics.median(measured) for size, measured in seconds.items()}
    return [
        StepTiming(size, medians[size], min(measured), size / medians[size], medians[size] / medians[batch_sizes[0]])
        for size, measured in seconds.items()
    ]


def _step_s(runner: TorchRunner, batch_size: int, position: int, clock: Callable[[], float]) -> float:
    works = tuple(
        ScheduledSequence(slot, f"bench-{slot}", (slot + 1,), position, False, True, 1, GREEDY, frozenset())
        for slot in range(batch_size)
    )
    started_s = clock()
    runner.execute(SchedulerOutput(0, works, ()))
    return clock() - started_s


def measure_limit(clock: Callable[[], float] = time.perf_counter, repeats: int = 5) -> Limit:
    """Memory read and arithmetic in float32, the best of some tries."""
    data = torch.ones(READ_BYTES // 4)
    square = torch.ones(SQUARE, SQUARE)
    reads: list[float] = []
    products: list[float] = []
    for _ in range(repeats):
        started_s = clock()
        data.sum()
        reads.append(clock() - started_s)
        started_s = clock()
        torch.mm(square, square)
        products.append(clock() - started_s)
    return Limit(READ_BYTES / min(reads), 2 * SQUARE**3 / min(products))


def measure_split(
    loaded: LoadedModel,
    batch_size: int,
    limit: Limit,
    *,
    position: int = 160,
    repeats: int = 9,
    clock: Callable[[], float] = time.perf_counter,
) -> StepSplit | None:
    """Where a decode step's time goes. None for a model that runs through transformers' own code."""
    network = loaded.network
    if not isinstance(network, PlainLlama):
        return None
    runner = loaded.make_runner(batch_size, position + 1, clock)
    with where_time_goes(network, clock) as spent:
        measured = []
        for _ in range(repeats + 1):
            spent.update(linear=0.0, attention=0.0)
            measured.append((_step_s(runner, batch_size, position, clock), spent["linear"], spent["attention"]))
    step_s, linear_s, attention_s = (statistics.median(times) for times in zip(*measured[1:], strict=True))
    weights = sum(layer.in_features * layer.out_features for layer in linear_layers(network))
    kv_bytes = batch_size * (position + 1) * loaded.kv_bytes_per_token
    num_bytes = sum(layer.weight_bytes for layer in linear_layers(network)) + kv_bytes
    return StepSplit(batch_size, step_s, linear_s, attention_s, limit.step_s(num_bytes, 2 * weights * batch_size))
