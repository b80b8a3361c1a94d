"""Charts as data: a spec holds no numbers of a run, and the rows say what the metrics say."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from batchviz.export import series
from batchviz.export.tables import gantt_rows, metric_rows, request_rows, wait_rows
from batchviz.metrics import request_results, run_metrics
from batchviz.scheduler import Policy
from batchviz.ui import charts, series_charts
from batchviz.ui.charts import GANTT_COLUMNS, table_of
from tests.builders import GOLDEN_LENGTHS, scripted_trace

TRACES = tuple(scripted_trace(policy, 4, GOLDEN_LENGTHS) for policy in (Policy.STATIC, Policy.CONTINUOUS))
SPECS = (
    (charts.gantt_spec, charts.GANTT_COLUMNS),
    (charts.waits_spec, charts.WAIT_COLUMNS),
    (series_charts.phases_spec, series_charts.PHASE_COLUMNS),
    (series_charts.queue_spec, series_charts.QUEUE_COLUMNS),
    (series_charts.tokens_spec, series_charts.TOKEN_COLUMNS),
    (series_charts.kv_spec, series_charts.KV_COLUMNS),
    (series_charts.share_spec, series_charts.SHARE_COLUMNS),
)


@pytest.mark.parametrize(("spec", "columns"), SPECS)
def test_a_spec_is_constant_holds_no_data_and_names_only_columns(
    spec: Callable[[], dict[str, Any]], columns: tuple[str, ...]
) -> None:
    text = json.dumps(spec())
    assert "data" not in spec()
    assert "datasets" not in spec()
    assert json.dumps(spec()) == text
    fields = {part.split('"')[0] for part in text.split('"field": "')[1:]}
    assert fields <= {*columns, *charts.PLACE_COLUMNS}


def test_the_cursor_is_one_more_row_of_the_data() -> None:
    rows = table_of(series.queue_rows(TRACES), series_charts.QUEUE_COLUMNS)
    placed = charts.placed(rows, 48, 320)
    assert placed["cursor"].drop_null().to_pylist() == [48]
    assert placed["longest"].drop_null().to_pylist() == [320]
    assert placed.num_rows == len(series.queue_rows(TRACES)) + 1
    assert placed.slice(0, rows.num_rows).select(rows.column_names).equals(rows)
    assert charts.placed(table_of([], GANTT_COLUMNS), None, 0)["cursor"].drop_null().to_pylist() == []


def test_a_request_s_stages_cover_its_wait_without_a_gap() -> None:
    for pane, trace in enumerate(TRACES):
        rows = gantt_rows(TRACES, pane)
        for index, result in enumerate(request_results(trace)):
            own = [row for row in rows if row["order"] == index]
            assert sum(row["steps"] for row in own) == result.e2e_steps
            assert all(a["end"] == b["start"] for a, b in pairwise(own))


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
    assert table_of([], GANTT_COLUMNS).column_names == list(GANTT_COLUMNS)
    assert len(request_rows(TRACES)) == 16
