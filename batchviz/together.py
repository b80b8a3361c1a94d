"""Several runs of one scenario, stepped in turn, so that a request may join all of them at the same step.

Owns: Together. Must not know: models, processes, pages. Runs one after the other are measured more purely; runs in turn
can be talked to: what is added arrives at one step, in every run, so they stay runs of one scenario.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batchviz.runs import Run
from batchviz.trace import StepSnapshot, TracedRequest


class Together:
    """Runs that keep step. A run that is through waits, and steps on, empty, once something is added."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)

    @property
    def has_work(self) -> bool:
        return any(run.has_work for run in self.runs)

    @property
    def next_step(self) -> int:
        """The first step that no run has begun: when something that is added now arrives."""
        return max((run.step_number for run in self.runs), default=0)

    def add(self, traced: TracedRequest, stop_token_ids: frozenset[int]) -> None:
        """Adds it to every run. Its arrival is `next_step` or later. Raises ValueError on a known id."""
        for run in self.runs:
            run.add(traced, stop_token_ids)

    def step(self) -> Iterator[tuple[int, StepSnapshot]]:
        """One step of every run that is not ahead of another: (place of the run, its step)."""
        working = [(place, run) for place, run in enumerate(self.runs) if run.has_work]
        behind = min((run.step_number for _, run in working), default=0)
        for place, run in working:
            if run.step_number == behind:
                yield place, run.step()
