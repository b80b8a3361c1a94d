"""Runners without a model, and the modelled cost of a step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchviz.runner import NoText, ScriptedRunner, StepCost
from batchviz.scheduler import SchedulerOutput


def test_a_step_in_which_nobody_works_costs_nothing() -> None:
    assert StepCost()(0) == 0.0
    assert ScriptedRunner().execute(SchedulerOutput(0, (), ())).forward_s == 0.0


def test_the_fit_finds_a_line() -> None:
    cost = StepCost.fit([1, 2, 8, 40], [0.03 + 0.002 * rows for rows in (1, 2, 8, 40)])
    assert cost.base_s == pytest.approx(0.03)
    assert cost.row_s == pytest.approx(0.002)


def test_the_fit_of_nothing_is_the_default_and_of_equal_steps_their_mean() -> None:
    assert StepCost.fit([], []) == StepCost()
    assert StepCost.fit([0, 0], [1.0, 1.0]) == StepCost()
    assert StepCost.fit([4, 4], [0.1, 0.3])(4) == pytest.approx(0.2)


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0.0001, 5.0)), min_size=1, max_size=30))
def test_a_fitted_cost_is_never_negative_and_keeps_the_mean(steps: list[tuple[int, float]]) -> None:
    rows, seconds = [r for r, _ in steps], [s for _, s in steps]
    cost = StepCost.fit(rows, seconds)
    assert cost.base_s >= 0
    assert cost.row_s >= 0
    assert sum(map(cost, rows)) == pytest.approx(sum(seconds), rel=1e-6)


def test_no_model_no_text() -> None:
    assert NoText().push("a", 0, True) is None
