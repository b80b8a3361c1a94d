"""One step's batch as charts: the block of the linear layers, a block of attention per sequence, the attention mask.

Owns: `linear_spec`, `attention_spec`, `mask_spec` and the rows they take. Must not know: streamlit, sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt

from batchviz.batch_picture import Block, Visible
from batchviz.colours import EMPTY, REQUEST_COLOURS
from batchviz.export.tables import Row
from batchviz.timeline import letter
from batchviz.trace import SlotPhase, Trace
from batchviz.ui.charts import NO_ROWS, chart_spec

LINEAR_COLUMNS = ("layout", "order", "start", "end", "middle", "letter", "request", "rows", "colour")
ATTENTION_COLUMNS = ("request", "slot", "keys", "longest", "rows", "colour")
MASK_COLUMNS = ("row", "slot", "request", "phase", "start", "end", "colour")
LETTER_SHARE = 30  # a letter stands where its piece is at least this part of the longer bar
PADDING = -1  # the colour of what is no request


def linear_rows(trace: Trace, blocks: Sequence[Block]) -> list[Row]:
    """The rows of the batch side by side, as they are packed, and as they would be if every sequence were as long."""
    places = _places(trace)
    longest = max((block.rows for block in blocks), default=0)
    in_order = sorted(blocks, key=lambda block: block.phase is SlotPhase.PREFILL)  # as the runner packs them
    found: list[Row] = []
    for order, (layout, is_padded) in enumerate((("packed, as here", False), ("padded", True))):
        start = 0
        for block in in_order:
            place = places[block.request_id]
            pieces = [(block.rows, letter(place), block.request_id, place % len(REQUEST_COLOURS))]
            if is_padded and block.rows < longest:
                pieces.append((longest - block.rows, "", "padding", PADDING))
            for rows, name, request, colour in pieces:
                end = start + rows
                middle = (start + end) / 2
                name = name if rows * LETTER_SHARE >= longest * len(blocks) else ""
                found.append(
                    dict(
                        zip(
                            LINEAR_COLUMNS,
                            (layout, order, start, end, middle, name, request, rows, colour),
                            strict=True,
                        )
                    )
                )
                start = end
    return found


def attention_rows(trace: Trace, blocks: Sequence[Block]) -> list[Row]:
    """A line per sequence: the keys that it looks at, and those that padding would add."""
    places = _places(trace)
    longest = max((block.keys for block in blocks), default=0)
    return [
        {
            "request": f"{letter(places[block.request_id])} {block.request_id}"[:40],
            "slot": block.slot,
            "keys": block.keys,
            "longest": longest,
            "rows": block.rows,
            "colour": places[block.request_id] % len(REQUEST_COLOURS),
        }
        for block in blocks
    ]


def mask_rows(trace: Trace, visible: Sequence[Visible]) -> list[Row]:
    places = _places(trace)
    return [
        {
            "row": one.row,
            "slot": one.slot,
            "request": one.request_id,
            "phase": str(one.phase),
            "start": one.start,
            "end": one.end,
            "colour": places[one.request_id] % len(REQUEST_COLOURS),
        }
        for one in visible
    ]


@cache
def linear_spec() -> dict[str, Any]:
    """Two bars: the packed batch, and the padded one."""
    bars = (
        alt.Chart()
        .mark_bar(height={"band": 0.8}, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("start:Q", title="rows through every linear layer", axis=alt.Axis(tickMinStep=1)),
            x2="end:Q",
            y=alt.Y("layout:N", title=None, sort=alt.EncodingSortField("order")),
            color=_colours(),
            tooltip=[alt.Tooltip("request:N"), alt.Tooltip("rows:Q")],
        )
    )
    names = (
        alt.Chart()
        .transform_filter("datum.rows > 0 && datum.letter != ''")
        .mark_text(fontSize=11, color="white", fontWeight="bold")
        .encode(x=alt.X("middle:Q"), y=alt.Y("layout:N", sort=alt.EncodingSortField("order")), text="letter:N")
    )
    return chart_spec(alt.layer(bars, names, data=NO_ROWS))


@cache
def attention_spec() -> dict[str, Any]:
    """A bar per sequence over its own keys; the grey behind it is what padding to the longest would add."""
    request = alt.Y(
        "request:N", title=None, sort=alt.EncodingSortField("slot"), axis=alt.Axis(labelLimit=150, labelOverlap=False)
    )
    tooltip = [alt.Tooltip("request:N"), alt.Tooltip("rows:Q", title="rows fed"), alt.Tooltip("keys:Q")]
    padded = (
        alt.Chart()
        .mark_bar(height={"band": 0.8}, color=EMPTY)
        .encode(x=alt.X("longest:Q", title="keys that attention looks at", stack=None), y=request)
    )
    own = (
        alt.Chart()
        .mark_bar(height={"band": 0.8})
        .encode(x=alt.X("keys:Q", stack=None), y=request, color=_colours(), tooltip=tooltip)
    )
    return chart_spec(alt.layer(padded, own, data=NO_ROWS))


@cache
def mask_spec() -> dict[str, Any]:
    """Rows go down, all keys side by side go right."""
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
            color=_colours(),
            tooltip=[alt.Tooltip("row:Q"), alt.Tooltip("slot:Q"), alt.Tooltip("request:N"), alt.Tooltip("phase:N")],
        )
    )


def _places(trace: Trace) -> dict[str, int]:
    return {request.id: place for place, request in enumerate(trace.scenario.requests)}


def _colours() -> alt.Color:
    scale = alt.Scale(domain=[PADDING, *range(len(REQUEST_COLOURS))], range=[EMPTY, *REQUEST_COLOURS])
    return alt.Color("colour:N", scale=scale, legend=None)
