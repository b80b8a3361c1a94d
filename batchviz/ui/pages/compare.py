"""The page: two runs of the same requests side by side, on one clock.

Owns: the layout and the knobs. Must not know: how anything is computed. The script returns at once; slow work is the
worker's, and the browser animates.
"""

from __future__ import annotations

from types import MappingProxyType

import streamlit as st

from batchviz.export.tables import gantt_rows, metric_rows, request_rows, run_label, wait_rows
from batchviz.scenario import MAX_SLOTS
from batchviz.scheduler import Policy
from batchviz.trace import RunnerKind, Seconds, Trace
from batchviz.trace_file import traces_from_json
from batchviz.ui import state
from batchviz.ui.charts import GANTT_COLUMNS, WAIT_COLUMNS, frame, gantt_spec, waits_spec
from batchviz.ui.live_panel import live_is_on, stage

POLICY_WORDS = MappingProxyType(
    {
        Policy.SEQUENTIAL: "sequential: one request at a time",
        Policy.STATIC: "static: a fixed group",
        Policy.CONTINUOUS: "continuous: refill freed slots",
    }
)


def compare_page() -> None:
    """Draws the page: the picture first, then the knobs that change it, then the figures."""
    st.html("<style>.stMainBlockContainer{padding-top:1.2rem;padding-bottom:3rem}</style>")
    if "preset" not in st.session_state:
        st.session_state["preset"] = next(iter(state.preset_titles()))
        _take_preset()
    preset_name = str(st.session_state["preset"])
    slots = int(st.session_state["slots"])
    panes = tuple((str(st.session_state[side]), slots) for side in ("left", "right"))
    scenario = state.preset(preset_name)

    st.markdown("### Why a finished answer still has to wait")
    st.caption(state.plain(scenario.look_for))
    bundle = state.scheduled_text(state.source_bundle(preset_name), panes)
    stage(scenario, panes, bundle, _knobs)
    traces = traces_from_json(bundle)
    st.caption(provenance(traces))
    _below(traces, bundle, preset_name)


def _knobs() -> None:
    """Every knob at once: what is shown is re-scheduled in a moment, without the model."""
    titles = state.preset_titles()
    disabled = live_is_on()
    columns = st.columns([3, 2.2, 2.2, 1.6], vertical_alignment="bottom")
    columns[0].selectbox(
        "Preset", list(titles), key="preset", format_func=titles.__getitem__, on_change=_take_preset, disabled=disabled
    )
    for column, side in zip(columns[1:3], ("left", "right"), strict=True):
        column.selectbox(
            side.capitalize(), list(Policy), key=side, format_func=POLICY_WORDS.__getitem__, disabled=disabled
        )
    columns[3].number_input(
        "Slots",
        1,
        MAX_SLOTS,
        key="slots",
        help="How many requests the engine runs at once. Sequential always has one.",
        disabled=disabled,
    )


def _take_preset() -> None:
    """A preset brings its own policies and slot count."""
    scenario = state.preset(st.session_state["preset"])
    st.session_state["left"], st.session_state["right"] = scenario.policies[0], scenario.policies[-1]
    st.session_state["slots"] = scenario.num_slots


def provenance(traces: tuple[Trace, ...]) -> str:
    """One line under the player: what of this is measured, recorded, counted, modelled."""
    origin = traces[0].origin
    tokens = {
        RunnerKind.MODEL: "Tokens: sampled live by the model",
        RunnerKind.RECORDED: "Tokens: recorded from the model",
        RunnerKind.SCRIPTED: "No model: lengths only",
    }[origin.runner]
    kinds = {trace.origin.seconds for trace in traces}
    if kinds == {Seconds.MEASURED}:
        seconds = "Seconds: measured in that run"
    elif kinds == {Seconds.MODELLED}:
        seconds = "Seconds: modelled from what the recorded steps cost"
    else:
        seconds = "Seconds: measured where this is the recorded schedule, else modelled"
    parts = [tokens, "Schedule: counted from a run of this engine", seconds]
    if origin.model is not None:
        exact = {True: "a batch changes no token (checked)", False: "a batch may change a token", None: ""}
        parts.append(f"{origin.model.name}, {origin.model.dtype}, {origin.model.device}")
        parts.append(exact[origin.model.exact])
        parts.append(f"{origin.machine}, {origin.date[:10]}")
    return " · ".join(state.plain(part) for part in parts if part)


def _below(traces: tuple[Trace, ...], bundle: str, preset_name: str) -> None:
    """Charts, figures, downloads."""
    st.markdown("#### Where each request's time went")
    for pane, column in enumerate(st.columns(len(traces), gap="large")):
        column.markdown(f"**{state.plain(run_label(pane, traces[pane]))}**")
        rows = gantt_rows(traces, pane)
        column.vega_lite_chart(
            frame(rows, GANTT_COLUMNS), gantt_spec(), key=f"gantt{pane}", height=_chart_height(traces, 24)
        )
    left, right = st.columns(2, gap="large")
    left.markdown("#### What each user waited")
    left.vega_lite_chart(
        frame(wait_rows(traces), WAIT_COLUMNS), waits_spec(), key="waits", height=_chart_height(traces, 34)
    )
    right.markdown("#### The figures")
    names = [run_label(pane, trace) for pane, trace in enumerate(traces)]
    right.dataframe(
        metric_rows(traces),
        hide_index=True,
        key="figures",
        height="content",
        column_config={
            "figure": st.column_config.TextColumn(width="medium"),
            **{name: st.column_config.NumberColumn(width="small", format="%.4g") for name in (*names, "ratio")},
        },
    )
    right.download_button(
        "Download trace",
        bundle,
        f"{preset_name}.trace.json",
        "application/json",
        key="download",
        on_click="ignore",
        help="Both runs as JSON: every slot at every step, every decision. `python -m batchviz check` holds it to the rules.",
    )
    with st.expander("Every request: prompts, answers and steps as a table"):
        st.dataframe(request_rows(traces), hide_index=True, key="requests")


def _chart_height(traces: tuple[Trace, ...], per_request: int) -> int:
    return 100 + per_request * max(len(traces[0].scenario.requests), 1)
