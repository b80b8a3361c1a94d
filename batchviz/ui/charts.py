"""The charts under the player: written in Altair once, served as Vega-Lite with only their data changing.

Owns: `gantt_spec`, `waits_spec`. Must not know: streamlit, engines, traces. A spec holds no numbers of a run: if it
changed with the data, the browser would tear the chart down and it would blink.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt
import pandas as pd

from batchviz.export.tables import Row
from batchviz.ui.theme import POLICY_COLOURS, STAGE_COLOURS

NO_ROWS = alt.InlineData(values=[])
GANTT_COLUMNS = ("run", "request", "order", "stage", "start", "end", "steps", "longest")
WAIT_COLUMNS = ("pane", "run", "request", "order", "wait")


def frame(rows: Sequence[Row], columns: Sequence[str]) -> pd.DataFrame:
    """The rows as a table that has its columns even when there are no rows."""
    return pd.DataFrame(rows, columns=list(columns))


@cache
def gantt_spec() -> dict[str, Any]:
    """One run: requests are rows, steps columns; waiting, prefill, decode, finished but withheld.

    An unseen mark at the longest run's last step gives every run the same scale.
    """
    stages = list(STAGE_COLOURS)
    rows = alt.Y("request:N", title=None, sort=alt.EncodingSortField("order"), axis=alt.Axis(labelLimit=150, labelOverlap=False))
    bars = (
        alt.Chart()
        .mark_bar(height={"band": 0.72})
        .encode(
            x=alt.X("start:Q", title="step", axis=alt.Axis(grid=True, tickMinStep=1), scale=alt.Scale(nice=False)),
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
    ruler = alt.Chart().mark_point(opacity=0).encode(x="longest:Q", y=rows)
    return _spec(
        alt.layer(bars, ruler, data=NO_ROWS).properties(
            description="When each request waited, was read, was answered and was withheld"
        )
    )


@cache
def waits_spec() -> dict[str, Any]:
    """Each user's wait until the answer was delivered, in steps, one bar a run."""
    return _spec(
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
        .properties(description="How long each user waited for the whole answer in each run")
    )


def _spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    spec = chart.to_dict()
    spec.pop("data", None)
    spec.pop("datasets", None)
    return spec
