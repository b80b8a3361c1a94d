"""Charts as data: a spec holds no numbers of a run, and the rows say what the metrics say."""

from __future__ import annotations

import json
from itertools import pairwise

from batchviz.export.tables import gantt_rows, metric_rows, request_rows, wait_rows
from batchviz.metrics import request_results, run_metrics
from batchviz.scheduler import Policy
from batchviz.ui.charts import GANTT_COLUMNS, WAIT_COLUMNS, frame, gantt_spec, waits_spec
from tests.builders import GOLDEN_LENGTHS, scripted_trace

TRACES = tuple(scripted_trace(policy, 4, GOLDEN_LENGTHS) for policy in (Policy.STATIC, Policy.CONTINUOUS))


def test_specs_are_constant_named_and_hold_no_data() -> None:
    for spec in (gantt_spec(), waits_spec()):
        assert "data" not in spec
        assert "datasets" not in spec
        assert spec["description"]
    assert json.dumps(gantt_spec()) == json.dumps(gantt_spec())


def test_fields_of_the_specs_are_columns_of_the_rows() -> None:
    for spec, columns in ((gantt_spec(), GANTT_COLUMNS), (waits_spec(), WAIT_COLUMNS)):
        fields = {part.split('"')[0] for part in json.dumps(spec).split('"field": "')[1:]}
        assert fields <= set(columns)


def test_a_request_s_stages_cover_its_wait_without_a_gap() -> None:
    for pane, trace in enumerate(TRACES):
        rows = gantt_rows(TRACES, pane)
        for index, result in enumerate(request_results(trace)):
            own = [row for row in rows if row["order"] == index]
            assert sum(row["steps"] for row in own) == result.e2e_steps
            assert all(a["end"] == b["start"] for a, b in pairwise(own))
        assert {row["longest"] for row in rows} == {320}


def test_withheld_is_drawn_for_static_alone() -> None:
    stages = [{row["stage"] for row in gantt_rows(TRACES, pane)} for pane in (0, 1)]
    assert "finished, answer withheld" in stages[0]
    assert "finished, answer withheld" not in stages[1]


def test_waits_are_those_of_the_metrics() -> None:
    waits = [row["wait"] for row in wait_rows(TRACES)]
    assert sum(waits[:8]) / 8 == run_metrics(TRACES[0]).mean_e2e_steps == 260
    assert sum(waits[8:]) / 8 == 61.75


def test_the_ratio_is_left_over_right() -> None:
    rows = {(row["figure"], row["unit"]): row for row in metric_rows(TRACES)}
    assert rows["Steps of the whole run", "steps, counted"]["ratio"] == 1.6
    assert rows["Duration", "s, modelled"]["1: static, 4 slots"] == run_metrics(TRACES[0]).duration_s


def test_tables_of_nothing_have_their_columns() -> None:
    assert list(frame([], GANTT_COLUMNS).columns) == list(GANTT_COLUMNS)
    assert len(request_rows(TRACES)) == 16
