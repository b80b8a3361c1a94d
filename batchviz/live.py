"""Runs on the real model: the part of the composition root that needs torch.

Owns: LiveModel, which turns a scenario's words into token ids and puts a Run together. Must not know: pages, processes.
Importing this file loads torch; nobody but the terminal's model commands and the worker's child process may.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

from batchviz import __version__
from batchviz.machine import describe_machine
from batchviz.model.load import LoadedModel, load_model
from batchviz.model.runner import TorchRunner
from batchviz.model.weights import Progress
from batchviz.request import GREEDY, Request, SamplingParams
from batchviz.runner import ModelRunner
from batchviz.runs import Run, request_from, scenario_record
from batchviz.scenario import Scenario, ScenarioError, ScenarioRequest, check_fits, shown_text
from batchviz.scheduler import Scheduler
from batchviz.trace import Origin, RunConfig, RunnerKind, ScenarioRecord, Seconds, TracedRequest


class LiveModel:
    """A loaded model that answers scenarios. `clock` returns seconds and may only go forward."""

    def __init__(self, loaded: LoadedModel, clock: Callable[[], float]) -> None:
        self.loaded = loaded
        self._clock = clock

    @classmethod
    def load(
        cls,
        clock: Callable[[], float],
        *,
        name: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        progress: Progress | None = None,
    ) -> LiveModel:
        """Finds, fetches if need be, and loads. Raises WeightsError or ValueError with one sentence."""
        return cls(load_model(name, device=device, dtype=dtype, progress=progress), clock)

    def prepare(self, scenario: Scenario, slot_capacity: int, sampling: SamplingParams = GREEDY) -> ScenarioRecord:
        """The scenario in this model's tokens. Raises ScenarioError if a prompt leaves no room in a slot."""
        if slot_capacity > self.loaded.max_positions:
            raise ScenarioError(
                f"the slot capacity is {slot_capacity:,}; this model knows at most {self.loaded.max_positions:,} positions"
            )
        return scenario_record(
            scenario, (self.traced(request, slot_capacity, sampling) for request in scenario.requests)
        )

    def traced(self, request: ScenarioRequest, slot_capacity: int, sampling: SamplingParams = GREEDY) -> TracedRequest:
        """One request in this model's tokens. Raises ScenarioError if its prompt leaves no room in a slot."""
        seed = _own_seed(sampling.seed, request.id)
        if request.prompt is not None:
            token_ids = self.loaded.encode_chat(request.prompt)
        else:
            assert request.prompt_tokens is not None
            if request.prompt_tokens < slot_capacity:
                token_ids = self.loaded.encode_length(request.prompt_tokens, seed)
            else:
                token_ids = (0,) * request.prompt_tokens
        if not token_ids:
            raise ScenarioError(f"the prompt of request {shown_text(request.id)} has no tokens; give it some words")
        check_fits(len(token_ids), request, slot_capacity)
        return TracedRequest(
            id=request.id,
            num_prompt_tokens=len(token_ids),
            max_tokens=request.max_tokens,
            arrival=request.arrival,
            output_tokens=request.output_tokens,
            prompt=request.prompt,
            prompt_token_ids=token_ids,
            sampling=sampling if sampling == GREEDY else SamplingParams(sampling.temperature, sampling.top_p, seed),
        )

    def start(
        self,
        record: ScenarioRecord,
        config: RunConfig,
        room: int = 1,
        *,
        most_slots: int = 0,
        watch: Callable[[TorchRunner], ModelRunner] = lambda runner: runner,
        scheduler: Scheduler | None = None,
    ) -> Run:
        """A run that is ready to step. The KV cache holds what this scenario needs, or `room` positions a slot; it has
        `most_slots` slots if that is more than the configuration's. `watch` may put something around the runner.
        """
        requests = [request_from(traced, self.loaded.stop_token_ids) for traced in record.requests]
        num_positions = _num_positions(requests, config, room)
        return Run(
            record,
            requests,
            config,
            self.origin(),
            watch(self.loaded.make_runner(max(config.num_slots, most_slots), num_positions, self._clock)),
            detokenizer=self.loaded.make_detokenizer(),
            clock=self._clock,
            scheduler=scheduler,
        )

    def check_memory(self, record: ScenarioRecord, configs: Sequence[RunConfig], room: int = 1) -> None:
        """Whether these runs have the memory to go on at once. Raises ValueError with the arithmetic if not."""
        requests = [request_from(traced, self.loaded.stop_token_ids) for traced in record.requests]
        num_positions = max(_num_positions(requests, config, room) for config in configs)
        self.loaded.check_memory(sum(config.num_slots for config in configs), num_positions)

    def origin(self) -> Origin:
        """This machine, these versions, this model, now."""
        return Origin(
            runner=RunnerKind.MODEL,
            seconds=Seconds.MEASURED,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=describe_machine(),
            versions={
                "batchviz": __version__,
                "python": platform.python_version(),
                "torch": version("torch"),
                "transformers": version("transformers"),
            },
            model=replace(self.loaded.record, stop_token_ids=tuple(sorted(self.loaded.stop_token_ids))),
        )


def _num_positions(requests: Sequence[Request], config: RunConfig, room: int) -> int:
    """How long a slot must be: those that no slot can hold are turned away and need none."""
    fitting = [r.num_reserved_tokens for r in requests if r.num_reserved_tokens <= config.slot_capacity]
    return max([*fitting, room])


def _own_seed(seed: int, request_id: str) -> int:
    """A request's own seed: from the run's seed and its id, so that it depends on nobody beside or before it."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{request_id}".encode()).digest()[:4], "big")
