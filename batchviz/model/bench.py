"""What one step costs at several batch sizes.

Owns: the measurement. Must not know: printing, files, policies.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from batchviz.model.load import LoadedModel
from batchviz.model.runner import TorchRunner
from batchviz.request import GREEDY
from batchviz.scheduler import ScheduledSequence, SchedulerOutput


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
