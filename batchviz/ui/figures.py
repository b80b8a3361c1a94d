"""Under the player: one chart at a time, its words and its numbers, and the table of figures.

Owns: which chart is seen, and that it follows the player's cursor when that rests. Must not know: how a number is
computed, where runs come from. Drawn in a fragment, so that a rest of the player redraws this and nothing else.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

import streamlit as st

from batchviz.ui import address, charts, state
from batchviz.ui.chart_data import SPECS, drawings, runs, table
from batchviz.ui.words import WORDS

FRAGMENT = "figures"


class Kind(NamedTuple):
    """A chart that can be chosen: its name, its heading, and the words that its ? explains."""

    label: str
    heading: str
    words: tuple[str, ...]


KINDS = MappingProxyType(
    {
        "requests": Kind(
            "Requests", "Where each request's time went", ("request", "queue", "prefill", "decode", "withheld")
        ),
        "slots": Kind("Slots", "What the slots did", ("slot-step", "prefill", "decode", "stalled", "held", "empty")),
        "queue": Kind("Queue", "Who waits in the queue", ("queue",)),
        "tokens": Kind("Tokens per second", "Output tokens per second", ("throughput",)),
        "kv-memory": Kind("KV memory", "KV memory, used and reserved", ("KV memory", "reserved")),
        "waits": Kind("Waits", "What each user waited", ("wait", "delivered")),
    }
)
OVER_STEPS = ("requests", "slots", "queue", "tokens", "kv-memory")  # their axis is the player's: the cursor is drawn


def show_figures(bundle: str) -> None:
    """The charts and the figures of the runs on show."""
    st.segmented_control(
        "Chart",
        list(KINDS),
        key="chart",
        required=True,
        format_func=lambda name: KINDS[name].label,
        label_visibility="collapsed",
    )
    name = st.session_state["chart"] if st.session_state["chart"] in KINDS else next(iter(KINDS))
    kind = KINDS[name]
    st.markdown(f"#### {kind.heading}", help=" ".join(WORDS[word] for word in kind.words))
    _show_charts(bundle, name)
    _show_table(bundle, "steps", "The numbers behind the charts as a table", "series")
    _show_metrics(bundle)
    _show_table(bundle, "requests", "Every request: prompts, answers and steps as a table", "requests")
    address.write_address()


def _show_charts(bundle: str, name: str) -> None:
    """The charts side by side, and under each the same in words: what a screen reader says, everybody may read."""
    step = st.session_state.get(address.STEP)
    found, longest = drawings(bundle, name), runs(bundle)["longest"]
    for place, (column, drawing) in enumerate(zip(st.columns(len(found), gap="large"), found, strict=True)):
        if drawing["label"]:
            column.markdown(f"**{state.plain(drawing['label'])}**")
        rows = drawing["rows"]
        if drawing["spec"] in OVER_STEPS:
            rows = charts.placed(rows, None if step is None else int(step), longest, drawing["top"])
        key, (spec, _) = f"chart_{drawing['spec']}{place}", SPECS[drawing["spec"]]
        column.vega_lite_chart(rows, spec(), key=key, height=drawing["height"], alt=drawing["words"])
        column.caption(state.plain(drawing["words"]))


def _show_table(bundle: str, of: str, title: str, key: str) -> None:
    """Made and sent only once somebody opens it."""
    box = st.expander(title, key=f"box_{key}", on_change="rerun")
    if box.open:
        box.dataframe(table(bundle, of), hide_index=True, key=key)


def _show_metrics(bundle: str) -> None:
    st.markdown("#### The figures", help=f"{WORDS['measured']} {WORDS['counted']} {WORDS['modelled']}")
    names = [*runs(bundle)["labels"], "ratio"]
    numbers = {name: st.column_config.NumberColumn(width=150, format="%.4g") for name in names}
    st.dataframe(
        table(bundle, "metrics"),
        hide_index=True,
        key="figures",
        height="content",
        column_config={"figure": st.column_config.TextColumn(width="medium"), **numbers},
    )
