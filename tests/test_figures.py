"""Sentences about runs mean what the metrics say; they are read and never executed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchviz.figures import RUN_FIGURES, FigureError, evaluate, shown
from batchviz.kv_metrics import kv_totals
from batchviz.lesson_runs import LessonRuns, run_of
from batchviz.metrics import request_results, run_metrics

RUNS = LessonRuns("four-slots", ("static", "continuous"))


@pytest.mark.parametrize("name", RUN_FIGURES)
def test_a_runs_figures_are_its_metrics(name: str) -> None:
    assert evaluate(f"static.{name}", RUNS) == getattr(run_metrics(run_of("four-slots", "static").trace), name)


def test_figures_of_requests_slots_memory_and_steps() -> None:
    trace = run_of("four-slots", "static").trace
    results = {result.request.id: result for result in request_results(trace)}
    assert evaluate('static.withheld("yes-no")', RUNS) == results["yes-no"].withheld_steps == 197
    assert evaluate('static.prompt_tokens("yes-no")', RUNS) == results["yes-no"].request.num_prompt_tokens
    assert evaluate("static.held", RUNS) == run_metrics(trace).slot_steps.held
    assert evaluate("static.kv_peak_used", RUNS) == kv_totals(trace).peak_used
    assert evaluate('continuous.rows("step 1")', RUNS) == 4
    assert evaluate('continuous.padded_rows("first_refill")', RUNS) == 35 * 4


def test_runs_go_by_policy_place_pane_and_preset() -> None:
    assert evaluate("first.num_steps", RUNS) == evaluate("static.num_steps", RUNS)
    assert evaluate("continuous_8.num_slots", RUNS) == 8
    assert evaluate("sixteen_chats.static.num_requests", RUNS) == 16
    assert evaluate("static.num_steps > continuous.num_steps and 1 < 2 < 3", RUNS) is True
    assert evaluate("round(max(1, 2.6)) - -1", RUNS) == 4


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "static.trace",
        "static.__class__",
        "static.results",
        "().__class__",
        "open('x')",
        "[1 for _ in (1,)]",
        "lambda: 1",
        "'text'",
        "static",
        "nobody.num_steps",
        "static.finished('nobody')",
        "static.finished(1)",
        "static.num_steps / 0",
        "9 ** 9 ** 9",
        "first_refill",
        "continuous.first_held > 1",
        "static_99999.num_steps",
        "max()",
        "1 +",
        "1" * 5000,
        "(" * 300 + ")" * 300,
    ],
)
def test_what_means_nothing_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(FigureError):
        evaluate(text, RUNS)


@given(st.text(alphabet="static.continuous_()\"'0123456789+-*/<>= andormixU\n\\{}[],:;#", max_size=60))
def test_nothing_but_the_projects_own_error_comes_out(text: str) -> None:
    try:
        value = evaluate(text, RUNS)
    except FigureError:
        return
    assert isinstance(value, (int, float, bool))


def test_figures_in_a_sentence() -> None:
    assert [shown(value) for value in (1234, 3.0, 305.25, 0.355, True)] == ["1,234", "3", "305.2", "0.35", "yes"]
    assert shown(0.336, ".0%") == "34%"
