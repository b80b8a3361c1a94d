"""The golden numbers: lengths 3,200,5,40,12,120,8,60, all at step 0. Every cell of the table is held here."""

import pytest

from batchviz.metrics import request_results, run_metrics
from batchviz.scheduler import Policy
from tests.builders import GOLDEN_LENGTHS, scripted_trace

TABLE = [
    # policy, slots, steps, useful, mean wait, mean finished + 1, admitted at
    ("sequential", 1, 448, 1.0, 267.25, 267.25, [0, 3, 203, 208, 248, 260, 380, 388]),
    ("static", 2, 420, 448 / 840, 305, 256, [0, 0, 200, 200, 240, 240, 360, 360]),
    ("static", 4, 320, 0.35, 260, 156, [0] * 4 + [200] * 4),
    ("static", 8, 200, 0.28, 200, 56, [0] * 8),
    ("continuous", 2, 248, 448 / 496, 116.875, 116.875, [0, 0, 3, 8, 48, 60, 180, 188]),
    ("continuous", 4, 200, 0.56, 61.75, 61.75, [0, 0, 0, 0, 3, 5, 15, 23]),
    ("continuous", 8, 200, 0.28, 56.0, 56.0, [0] * 8),
]


@pytest.mark.parametrize(("policy", "slots", "steps", "useful", "wait", "finished", "admitted"), TABLE)
def test_golden_numbers(
    policy: str, slots: int, steps: int, useful: float, wait: float, finished: float, admitted: list[int]
) -> None:
    trace = scripted_trace(Policy(policy), slots, GOLDEN_LENGTHS)
    results = request_results(trace)
    metrics = run_metrics(trace, results)
    assert metrics.num_steps == steps
    assert metrics.slot_utilization == pytest.approx(useful, abs=1e-12)
    assert metrics.mean_e2e_steps == wait
    assert metrics.mean_finished_steps == finished
    assert [result.admitted_step for result in results] == admitted


def test_three_harms_are_told_apart() -> None:
    """Static on four slots: slots held, answers withheld and slot-steps empty are three different numbers."""
    metrics = run_metrics(scripted_trace(Policy.STATIC, 4, GOLDEN_LENGTHS))
    assert metrics.slot_steps.held == 4 * 320 - 448  # every slot-step that is not work is a held slot here
    assert metrics.slot_steps.empty == 0
    assert metrics.mean_withheld_steps == 260 - 156


def test_equal_lengths_gain_nothing() -> None:
    for slots in (1, 2, 4, 8):
        static = scripted_trace(Policy.STATIC, slots, [56] * 8)
        continuous = scripted_trace(Policy.CONTINUOUS, slots, [56] * 8)
        assert len(static.steps) == len(continuous.steps)


def test_first_come_first_served_cannot_mend_an_order() -> None:
    lengths = [3] * 7 + [200]
    assert len(scripted_trace(Policy.STATIC, 4, lengths).steps) == 203
    assert len(scripted_trace(Policy.CONTINUOUS, 4, lengths).steps) == 203
