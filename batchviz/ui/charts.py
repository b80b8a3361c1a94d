"""The charts under the player: written in Altair once, served as Vega-Lite with only their data changing.

Owns: `gantt_spec`, `waits_spec`, the cursor's rule. Must not know: streamlit, engines, traces. A spec holds no numbers of a run: if it
changed with the data, the browser would tear the chart down and it would blink.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt
import pandas as pd
import pyarrow as pa

from batchviz.colours import CURSOR
from batchviz.export.tables import Row
from batchviz.ui.theme import POLICY_COLOURS, STAGE_COLOURS

NO_ROWS = alt.InlineData(values=[])
GANTT_COLUMNS = ("run", "request", "order", "stage", "start", "end", "steps")
PLACE_COLUMNS = ("cursor", "longest", "top")  # of the one row that says where the player rests, how far the axes go
WAIT_COLUMNS = ("pane", "run", "request", "order", "wait")


def table_of(rows: Sequence[Row], columns: Sequence[str] | None = None) -> pa.Table:
    """The rows as the browser takes them; with `columns`, a table has these even when there are no rows."""
    return pa.Table.from_pandas(
        pd.DataFrame(rows, columns=None if columns is None else list(columns)), preserve_index=False
    )


def placed(table: pa.Table, cursor: int | None, longest: int, top: float = 0) -> pa.Table:
    """The table, and one more row with the cursor and the ends of the axes, so that charts side by side have the same."""
    place = pa.table({"cursor": pa.array([cursor], pa.float64()), "longest": [float(longest)], "top": [float(top)]})
    return pa.concat_tables([table, place], promote_options="default")


@cache
def gantt_spec() -> dict[str, Any]:
    """One run: requests are rows, steps columns; waiting, prefill, decode, finished but withheld."""
    stages = list(STAGE_COLOURS)
    rows = alt.Y(
        "request:N", title=None, sort=alt.EncodingSortField("order"), axis=alt.Axis(labelLimit=150, labelOverlap=False)
    )
    bars = (
        alt.Chart()
        .transform_filter("isValid(datum.start)")
        .mark_bar(height={"band": 0.72})
        .encode(
            x=step_axis("start"),
            x2="end:Q",
            y=rows,
            color=alt.Color(
                "stage:N",
                title=None,
                scale=alt.Scale(domain=stages, range=[STAGE_COLOURS[stage] for stage in stages]),
                legend=alt.Legend(orient="top", labelLimit=260, columns=2),
            ),
            tooltip=[
                alt.Tooltip("request:N"),
                alt.Tooltip("stage:N"),
                alt.Tooltip("start:Q", title="from step"),
                alt.Tooltip("steps:Q", title="steps"),
            ],
        )
    )
    return with_cursor(bars)


@cache
def waits_spec() -> dict[str, Any]:
    """Each user's wait until the answer was delivered, in steps, one bar a run."""
    return chart_spec(
        alt.Chart(NO_ROWS)
        .mark_bar()
        .encode(
            x=alt.X("wait:Q", title="steps from arrival to delivery"),
            y=alt.Y("request:N", title=None, sort=alt.EncodingSortField("order")),
            yOffset=alt.YOffset("run:N", sort=alt.EncodingSortField("pane")),
            color=alt.Color(
                "run:N",
                title=None,
                sort=alt.EncodingSortField("pane"),
                scale=alt.Scale(range=list(POLICY_COLOURS.values())),
                legend=alt.Legend(orient="top", labelLimit=260),
            ),
            tooltip=[alt.Tooltip("run:N"), alt.Tooltip("request:N"), alt.Tooltip("wait:Q", title="steps waited")],
        )
    )


def with_cursor(chart: alt.Chart, height: alt.Y | None = None) -> dict[str, Any]:
    """The chart, a rule where the player rests, and an unseen mark that gives every run the same axes.

    `height` is the axis that `top` belongs to, if the chart counts something upwards.
    """
    rule = (
        alt.Chart()
        .transform_filter("isValid(datum.cursor)")
        .mark_rule(color=CURSOR, strokeWidth=2, aria=False)
        .encode(x=step_axis("cursor"), tooltip=[alt.Tooltip("cursor:Q", title="the player rests at step")])
    )
    ruler = alt.Chart().transform_filter("isValid(datum.longest)").mark_point(opacity=0).encode(x=step_axis("longest"))
    if height is not None:
        ruler = ruler.encode(y=height)
    return chart_spec(alt.layer(chart, ruler, rule, data=NO_ROWS))


def step_axis(field: str) -> alt.X:
    return alt.X(f"{field}:Q", title="step", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(nice=False))


def chart_spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart as Vega-Lite without its data and its words (`alt`), which come with every showing."""
    spec = chart.to_dict()
    spec.pop("data", None)
    spec.pop("datasets", None)
    return spec
