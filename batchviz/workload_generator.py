"""Made-up requests from a few numbers and a seed: the `generate` part of a scenario file.

Owns: distributions of lengths and arrivals. Must not know: files, presets, engines, models.
Randomness comes from `random.Random` and the seed alone; arrivals, prompts and answers draw from streams of their own,
so changing one of them leaves the others as they were.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from batchviz.scenario import MAX_ARRIVAL, MAX_LENGTH, ArrivalUnitName, ScenarioError, ScenarioRequest

ArrivalsName = Literal["poisson", "burst"]


class Lengths(NamedTuple):
    """How many tokens a prompt, or an answer, has."""

    kind: Literal["fixed", "uniform", "exponential"]
    least: int  # fixed: the length
    most: int
    mean: float = 0  # exponential only, before it is cut to least and most

    def draw(self, source: random.Random) -> int:
        if self.kind == "exponential":
            return min(max(round(source.expovariate(1 / self.mean)), self.least), self.most)
        return source.randint(self.least, self.most)


def read_lengths(value: object) -> Lengths:
    """From plain data: 32, {uniform: [8, 48]}, {exponential: 32} or {exponential: 32, max: 256}. Raises ValueError."""
    if _is_length(value):
        return Lengths("fixed", value, value)  # type: ignore[arg-type]
    if isinstance(value, dict) and set(value) == {"uniform"}:
        bounds = value["uniform"]
        if isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_length, bounds)) and bounds[0] <= bounds[1]:
            return Lengths("uniform", bounds[0], bounds[1])
    if isinstance(value, dict) and "exponential" in value and set(value) <= {"exponential", "max"}:
        mean, most = value["exponential"], value.get("max", MAX_LENGTH)
        if type(mean) in (int, float) and 1 <= mean <= MAX_LENGTH and _is_length(most):
            return Lengths("exponential", 1, most, float(mean))
    raise ValueError


def _is_length(value: object) -> bool:
    return type(value) is int and 1 <= value <= MAX_LENGTH


@dataclass(frozen=True, slots=True)
class Generator:
    """What to make up. `rate` is in requests per step or per second, whatever arrivals are counted in.

    `poisson`: the gaps between arrivals are exponential. `burst`: groups of `burst` arrive together, at equal distances;
    without a size all arrive at once. The first request arrives at 0.
    """

    num_requests: int
    arrivals: ArrivalsName
    prompt_tokens: Lengths
    output_tokens: Lengths
    rate: float | None = None
    burst: int | None = None
    seed: int = 0

    def requests(self, arrival_unit: ArrivalUnitName) -> tuple[ScenarioRequest, ...]:
        """The same for the same generator, on every machine. Raises ScenarioError if a rate is missing or too small."""
        prompts, outputs = (random.Random(f"{self.seed}:{name}") for name in ("prompts", "outputs"))
        requests = []
        for number, at in enumerate(self._arrival_times(), 1):
            arrival = int(at) if arrival_unit == "steps" else round(at, 6)
            if arrival > MAX_ARRIVAL:
                raise ScenarioError(
                    f"generate.rate is {self.rate:g}, so request {number} arrives after more than {MAX_ARRIVAL:,} "
                    f"{arrival_unit}; give a higher rate or fewer requests"
                )
            num_output_tokens = self.output_tokens.draw(outputs)
            requests.append(
                ScenarioRequest(
                    id=f"r{number}",
                    max_tokens=num_output_tokens,
                    prompt_tokens=self.prompt_tokens.draw(prompts),
                    output_tokens=num_output_tokens,
                    arrival=arrival,
                )
            )
        return tuple(requests)

    def _arrival_times(self) -> Iterator[float]:
        size = self.burst or self.num_requests
        if self.arrivals == "burst" and size >= self.num_requests:
            yield from [0.0] * self.num_requests
            return
        if self.rate is None:
            raise ScenarioError(f"generate.rate is missing; arrivals of the kind {self.arrivals} need one")
        if self.arrivals == "burst":
            yield from (place // size * size / self.rate for place in range(self.num_requests))
            return
        source = random.Random(f"{self.seed}:arrivals")
        at = 0.0
        for _ in range(self.num_requests):
            yield at
            at += source.expovariate(self.rate)
