"""The page: two runs of the same requests side by side, on one clock.

Owns: the layout and the knobs. Must not know: how anything is computed. The script returns at once; slow work is the
worker's, and the browser animates.
"""

from __future__ import annotations

from types import MappingProxyType

import streamlit as st

from batchviz.export.tables import gantt_rows, metric_rows, request_rows, wait_rows
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
    """Draws the page."""
    st.html("<style>.stMainBlockContainer{padding-top:1.2rem;padding-bottom:3rem}</style>")
    titles = state.preset_titles()
    st.markdown("## Why a finished answer still has to wait")
    preset_name, panes = _knobs(titles)
    scenario = state.preset(preset_name)
    st.markdown(state.plain(scenario.look_for))
    bundle = state.scheduled_text(state.source_bundle(preset_name), panes)
    stage(scenario, panes, bundle)
    traces = traces_from_json(bundle)
    st.caption(provenance(traces))
    _below(traces, bundle, preset_name)


def _knobs(titles: dict[str, str]) -> tuple[str, tuple[tuple[str, int], ...]]:
    """The row of knobs; returns the preset and (policy, slots) of each pane."""
    names = list(titles)
    st.session_state.setdefault("preset", names[0])
    if "slots" not in st.session_state:
        _take_preset()
    disabled = live_is_on()
    columns = st.columns([3, 2.2, 2.2, 1.6], vertical_alignment="bottom")
    columns[0].selectbox(
        "Preset", names, key="preset", format_func=lambda name: titles[name], on_change=_take_preset, disabled=disabled
    )
    policies = list(Policy)
    columns[1].selectbox("Left", policies, key="left", format_func=POLICY_WORDS.__getitem__, disabled=disabled)
    columns[2].selectbox("Right", policies, key="right", format_func=POLICY_WORDS.__getitem__, disabled=disabled)
    columns[3].number_input(
        "Slots", 1, MAX_SLOTS, key="slots", help="How many requests the engine runs at once.", disabled=disabled
    )
    slots = int(st.session_state["slots"])
    panes = tuple((str(st.session_state[side]), slots) for side in ("left", "right"))
    return str(st.session_state["preset"]), panes


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
    st.vega_lite_chart(frame(gantt_rows(traces), GANTT_COLUMNS), gantt_spec(), key="gantt")
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("#### What each user waited")
        st.vega_lite_chart(frame(wait_rows(traces), WAIT_COLUMNS), waits_spec(), key="waits")
    with right:
        st.markdown("#### The figures")
        st.dataframe(metric_rows(traces), hide_index=True, key="figures")
        st.download_button(
            "Download trace", bundle, f"{preset_name}.trace.json", "application/json", key="download", on_click="ignore"
        )
    with st.expander("Every request: prompts, answers and steps as a table"):
        st.dataframe(request_rows(traces), hide_index=True, key="requests")
