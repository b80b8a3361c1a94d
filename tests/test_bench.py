"""The benchmark counts what it says it counts. A made-up clock stands in for time: nothing here is a timed test."""

from __future__ import annotations

import json

import pytest

from batchviz import bench
from batchviz.bench import Growth, measure_engine, to_plain
from batchviz.scheduler import Policy


class Ticks:
    """A clock that moves a millisecond whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def test_a_clock_that_ticks_once_a_block_gives_every_engine_the_same_cost() -> None:
    measured = measure_engine(clock=Ticks(), repeats=2, many=150)
    assert [speed.policy for speed in measured.speeds] == [Policy.STATIC, Policy.CONTINUOUS]
    assert all(speed.steps_per_s > 100_000 for speed in measured.speeds), "a whole run took one tick"
    for growth, what in zip(measured.growths, ("waiting", "finished"), strict=True):
        assert (growth.what, growth.few, growth.many) == (what, 100, 150)
        assert growth.few_s == pytest.approx(0.001 / bench.STEPS_OF_A_BLOCK)
        assert growth.ratio == pytest.approx(1)


def test_there_is_work_in_every_block_and_a_queue_to_the_end() -> None:
    for repeats in (1, 2, 7):
        length = bench._long_enough(repeats)
        steps = bench.STEPS_OF_A_BLOCK * repeats + 1
        assert bench.FEW * length // bench.NUM_SLOTS > steps
        assert length < bench.STEPS_OF_A_BLOCK * repeats, "answers end and begin while the clock runs"


def test_its_plain_data_is_json() -> None:
    plain = to_plain(measure_engine(clock=Ticks(), repeats=1, many=120))
    assert json.loads(json.dumps(plain)) == plain
    assert to_plain(bench.EngineBench((), (Growth("waiting", 1, 2, 4e-5, 5e-5),)))["growths"] == [
        {"what": "waiting", "few": 1, "many": 2, "few_us": 40.0, "many_us": 50.0, "ratio": 1.25}
    ]
