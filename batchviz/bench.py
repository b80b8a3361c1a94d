"""What the engine's own work costs, without a model: what `python -m batchviz bench` measures.

Owns: the measurements and their plain data. Must not know: terminals, pages, torch (model/bench.py times real steps).
Times are medians of alternating blocks, so that a slow moment of the machine hits everything alike. The default clock
counts this process's processor time: the engine is one thread, and a busy neighbour does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from batchviz.engine import Engine
from batchviz.request import Request
from batchviz.runner import ScriptedRunner
from batchviz.scheduler import Policy, make_scheduler

BENCH_SCHEMA = "batchviz-bench/1"
NUM_SLOTS = 8
PROMPT = (0,) * 100
FEW, MANY = 100, 100_000
STEPS_OF_A_BLOCK = 100
Clock = Callable[[], float]


class Speed(NamedTuple):
    """Whole runs of the scripted engine, every snapshot kept."""

    policy: Policy
    num_slots: int
    steps_per_s: float


class Growth(NamedTuple):
    """The cost of a step, in seconds, with few and with many of something around."""

    what: str
    few: int
    many: int
    few_s: float
    many_s: float

    @property
    def ratio(self) -> float:
        return self.many_s / self.few_s


class EngineBench(NamedTuple):
    speeds: tuple[Speed, ...]
    growths: tuple[Growth, ...]


def measure_engine(*, clock: Clock = time.process_time, repeats: int = 7, many: int = MANY) -> EngineBench:
    """Takes some seconds. `clock` returns seconds and may only go forward."""
    return EngineBench(
        tuple(_speeds(clock, repeats)), (_waiting(clock, repeats, many), _finished(clock, repeats, many))
    )


def to_plain(engine: EngineBench) -> dict[str, Any]:
    """Plain data, ready for `json.dumps`."""
    return {
        "speeds": [speed._replace(steps_per_s=round(speed.steps_per_s))._asdict() for speed in engine.speeds],
        "growths": [
            {
                "what": growth.what,
                "few": growth.few,
                "many": growth.many,
                "few_us": round(growth.few_s * 1e6, 2),
                "many_us": round(growth.many_s * 1e6, 2),
                "ratio": round(growth.ratio, 3),
            }
            for growth in engine.growths
        ],
    }


def _speeds(clock: Clock, repeats: int) -> Iterable[Speed]:
    policies = (Policy.STATIC, Policy.CONTINUOUS)
    measured: Mapping[Policy, list[float]] = {policy: [] for policy in policies}
    for _ in range(repeats):
        for policy in policies:
            engine = _engine(policy)
            engine.add_all(_requests(100, "r", lambda i: 20 + i * 37 % 160))
            started = clock()
            num_steps = len(engine.run())
            measured[policy].append(num_steps / max(clock() - started, 1e-9))
    return [Speed(policy, NUM_SLOTS, median(measured[policy])) for policy in policies]


def _waiting(clock: Clock, repeats: int, many: int) -> Growth:
    engines = []
    for number in (FEW, many):
        engine = _engine(Policy.CONTINUOUS)
        engine.add_all(_requests(number + NUM_SLOTS, "r", lambda _: _long_enough(repeats)))
        engine.step()  # everybody arrives
        engines.append(engine)
    few_s, many_s = _alternate(engines, clock, repeats)
    return Growth("waiting", FEW, many, few_s, many_s)


def _finished(clock: Clock, repeats: int, many: int) -> Growth:
    engines = []
    for number in (FEW, many):
        engine = _engine(Policy.CONTINUOUS)
        engine.add_all(_requests(number, "gone", lambda _: 1))
        while engine.has_work:
            engine.step()
        engine.add_all(_requests(FEW, "r", lambda _: _long_enough(repeats)))
        engine.step()
        engines.append(engine)
    few_s, many_s = _alternate(engines, clock, repeats)
    return Growth("finished", FEW, many, few_s, many_s)


def _long_enough(repeats: int) -> int:
    """Answers so long that the work lasts for all blocks, and still ends and begins in each of them."""
    return max(STEPS_OF_A_BLOCK * repeats * NUM_SLOTS * 2 // FEW, 1)


def _alternate(engines: Sequence[Engine], clock: Clock, repeats: int) -> list[float]:
    """The median cost of a step of each engine, in seconds."""
    costs: list[list[float]] = [[] for _ in engines]
    for _ in range(repeats):
        for engine, own_costs in zip(engines, costs, strict=True):
            started = clock()
            for _ in range(STEPS_OF_A_BLOCK):
                engine.step()
            own_costs.append(max(clock() - started, 1e-9) / STEPS_OF_A_BLOCK)
    return [median(own_costs) for own_costs in costs]


def _engine(policy: Policy) -> Engine:
    return Engine(make_scheduler(policy, NUM_SLOTS), ScriptedRunner())


def _requests(number: int, name: str, length: Callable[[int], int]) -> list[Request]:
    return [Request(f"{name}{i}", PROMPT, length(i), output_tokens=length(i)) for i in range(number)]
