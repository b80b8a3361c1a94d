"""The charts over the steps of a run: slots by phase, queue, tokens per second, KV memory, and how waits are spread.

Owns: their specs and the shape of their rows. Must not know: streamlit, engines, traces. As in charts.py a spec holds no
number of a run; where the player rests and how long the longest run is come as one more row of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import altair as alt

from batchviz.ui.charts import NO_ROWS, chart_spec, step_axis, with_cursor
from batchviz.ui.theme import KV_COLOURS, PHASE_COLOURS, POLICY_COLOURS

PHASE_COLUMNS = ("step", "phase", "order", "slots")
QUEUE_COLUMNS = ("run", "pane", "step", "waiting")
TOKEN_COLUMNS = ("run", "pane", "step", "tokens")
KV_COLUMNS = ("step", "kind", "order", "positions")
SHARE_COLUMNS = ("run", "pane", "wait", "share")


@cache
def phases_spec() -> dict[str, Any]:
    """One run: slots by what they did, stacked; together always as many as there are slots."""
    return _stacked("phase", "slots", "slots", PHASE_COLOURS)


@cache
def kv_spec() -> dict[str, Any]:
    """One run: KV positions used, and reserved without being used."""
    return _stacked("kind", "positions", "KV positions", KV_COLOURS)


@cache
def queue_spec() -> dict[str, Any]:
    """Every run: how many requests wait."""
    return _lines("waiting", "requests waiting")


@cache
def tokens_spec() -> dict[str, Any]:
    """Every run: output tokens per second."""
    return _lines("tokens", "output tokens per second")


@cache
def share_spec() -> dict[str, Any]:
    """Every run: the share of answers that are with their users after so many steps."""
    return chart_spec(
        alt.Chart(NO_ROWS)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("wait:Q", title="steps from arrival to delivery", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y(
                "share:Q", title="share of answers delivered", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])
            ),
            **_by_run(),
            tooltip=[alt.Tooltip("run:N"), alt.Tooltip("wait:Q", title="steps"), alt.Tooltip("share:Q", format=".0%")],
        )
    )


def _stacked(kind: str, amount: str, title: str, colours: Mapping[str, str]) -> dict[str, Any]:
    areas = (
        alt.Chart()
        .transform_filter("isValid(datum.step)")
        .mark_area(interpolate="step-after")
        .encode(
            x=step_axis("step"),
            y=alt.Y(f"{amount}:Q", title=title, stack="zero", axis=alt.Axis(tickMinStep=1)),
            order=alt.Order("order:Q"),
            color=alt.Color(
                f"{kind}:N",
                title=None,
                scale=alt.Scale(domain=list(colours), range=list(colours.values())),
                legend=alt.Legend(orient="top", labelLimit=260, columns=3),
            ),
            tooltip=[alt.Tooltip("step:Q"), alt.Tooltip(f"{kind}:N"), alt.Tooltip(f"{amount}:Q", format=".4~g")],
        )
    )
    return with_cursor(areas, alt.Y("top:Q", title=title))


def _lines(amount: str, title: str) -> dict[str, Any]:
    lines = (
        alt.Chart()
        .transform_filter("isValid(datum.step)")
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=step_axis("step"),
            y=alt.Y(f"{amount}:Q", title=title),
            **_by_run(),
            tooltip=[alt.Tooltip("run:N"), alt.Tooltip("step:Q"), alt.Tooltip(f"{amount}:Q", format=".4~g")],
        )
    )
    return with_cursor(lines)


def _by_run() -> dict[str, Any]:
    """Colour and dashes say the run: colour is never the only sign."""
    order = alt.EncodingSortField("pane")
    return {
        "color": alt.Color(
            "run:N",
            title=None,
            sort=order,
            scale=alt.Scale(range=list(POLICY_COLOURS.values())),
            legend=alt.Legend(orient="top", labelLimit=260),
        ),
        "strokeDash": alt.StrokeDash("run:N", title=None, sort=order),
    }
