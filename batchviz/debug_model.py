"""A debugging session on the real model: the likeliest tokens of every step are kept, so that going back shows them.

Owns: ModelStart. Must not know: terminals, pages. Importing this file loads torch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from batchviz.debug_run import Candidate, Seen, Started
from batchviz.live import LiveModel
from batchviz.model.likeliest import WatchedRunner
from batchviz.model.runner import TorchRunner
from batchviz.model.weights import Progress
from batchviz.request import GREEDY, SamplingParams
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.trace import RunConfig, TracedRequest

ROOM = 1_024  # KV positions of a slot, at least: requests that come later must fit as well


def load_for_debugging(name: str | None, device: str | None, dtype: str | None, progress: Progress) -> LiveModel:
    """The model, ready for ModelStart."""
    return LiveModel.load(time.perf_counter, name=name, device=device, dtype=dtype, progress=progress)


class ModelStart:
    """The scenario, answered by the model, from its beginning as often as it is asked for."""

    def __init__(
        self,
        model: LiveModel,
        scenario: Scenario,
        slot_capacity: int,
        sampling: SamplingParams = GREEDY,
        room: int = ROOM,
    ) -> None:
        self._model = model
        self._room = min(room, slot_capacity)
        self._sampling = sampling
        self._record = model.prepare(scenario, slot_capacity, sampling)

    def begin(self, config: RunConfig) -> Started:
        return self.again(config, config.num_slots)

    def again(self, config: RunConfig, most_slots: int) -> Started:
        watched: list[WatchedRunner] = []

        def watch(runner: TorchRunner) -> WatchedRunner:
            watched.append(WatchedRunner(runner))
            return watched[0]

        run = self._model.start(self._record, config, self._room, most_slots=most_slots, watch=watch)
        return Started(run, _Watched(self._model, watched[0]))

    def request(self, asked: ScenarioRequest) -> tuple[TracedRequest, frozenset[int]]:
        traced = self._model.traced(asked, self._room, self._sampling)
        return traced, frozenset(self._model.loaded.stop_token_ids)


class _Watched(Sequence[Seen]):
    """What the runner remembers, with each token's text; looked up when somebody looks."""

    def __init__(self, model: LiveModel, runner: WatchedRunner) -> None:
        self._model = model
        self._runner = runner

    def __len__(self) -> int:
        return len(self._runner.steps)

    def __getitem__(self, step: int) -> Seen:  # type: ignore[override]
        watched = self._runner.steps[step]
        likeliest = {
            slot: tuple(
                Candidate(one.token_id, self._model.loaded.text_of(one.token_id), one.probability) for one in likely
            )
            for slot, likely in watched.likely.items()
        }
        return Seen(likeliest, watched.linear_s, watched.attention_s)
