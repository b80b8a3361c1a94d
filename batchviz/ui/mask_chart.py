"""The attention mask of one step as a chart: a line a row, coloured where it looks.

Owns: `mask_spec`. Must not know: streamlit, sessions, traces.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import altair as alt

from batchviz.ui.charts import NO_ROWS, chart_spec
from batchviz.ui.theme import REQUEST_COLOURS

MASK_COLUMNS = ("row", "slot", "request_id", "phase", "start", "end", "colour")


@cache
def mask_spec() -> dict[str, Any]:
    """Rows go down, all keys side by side go right."""
    colours = alt.Scale(domain=list(range(len(REQUEST_COLOURS))), range=list(REQUEST_COLOURS))
    return chart_spec(
        alt.Chart(NO_ROWS)
        .transform_calculate(below="datum.row + 1")
        .mark_rect()
        .encode(
            x=alt.X("start:Q", title="keys of every sequence, side by side", scale=alt.Scale(nice=False)),
            x2="end:Q",
            y=alt.Y(
                "row:Q",
                title="row of the batch",
                scale=alt.Scale(reverse=True, nice=False),
                axis=alt.Axis(tickMinStep=1),
            ),
            y2="below:Q",
            color=alt.Color("colour:N", scale=colours, legend=None),
            tooltip=[
                alt.Tooltip("row:Q"),
                alt.Tooltip("slot:Q"),
                alt.Tooltip("request_id:N", title="request"),
                alt.Tooltip("phase:N"),
            ],
        )
    )
