"""The page: two or three runs of the same requests side by side, on one clock.

Owns: the layout. Must not know: how anything is computed. The script returns at once; slow work is the worker's, and
the browser animates.
"""

from __future__ import annotations

import streamlit as st

from batchviz.engine import EngineLimitError
from batchviz.phrases import exactness
from batchviz.trace import RunnerKind, Seconds, Trace
from batchviz.ui import address, figures, files, knobs, state
from batchviz.ui.live_panel import HAS_FIGURES, live_is_on, show_controls, stage, wait_for_player
from batchviz.ui.source import Source, bundle_of, is_whole, source_titles, usual_panes
from batchviz.ui.theme import page_style
from batchviz.ui.words import TITLE


def compare_page() -> None:
    """Draws the page: the picture first, then the knobs that change it, then the figures."""
    st.html(page_style())
    address.open_view()
    source = address.source_now()
    bundle, problem = _bundle(source)

    if st.context.is_embedded:  # a frame in another page: the player, and nothing around it
        st.html(page_style("0.5rem", "[data-testid='stHeader']{display:none}"))
        stage(source, bundle)
        return
    st.markdown(f"### {TITLE}")
    st.caption(state.plain(source.scenario.look_for or source.scenario.title))
    files.show_notices()
    if problem is not None:
        st.warning(state.plain(problem), icon=":material/info:")

    st.session_state[HAS_FIGURES] = bundle is not None
    stage(source, bundle)
    if not state.is_painted():
        address.write_address()
        wait_for_player()
        return  # the player first: it says when it is seen, and the page is drawn whole
    knobs.show_knobs(source_titles(), address.take_source, live_is_on(), fixed=not _is_movable(source))
    show_controls(source, knobs.panes_now(), bundle)
    if bundle is not None:
        st.caption(_provenance_of(bundle))
        st.fragment(figures.show_figures, key=figures.FRAGMENT)(bundle)
    address.write_address()
    address.mark_drawn()


def _is_movable(source: Source) -> bool:
    return source.tokens is None or is_whole(source)


def _bundle(source: Source) -> tuple[str | None, str | None]:
    """The runs on show, None before there are any; and what is wrong with the panes, in which case the usual ones show."""
    try:
        return bundle_of(source, knobs.panes_now()), None
    except (EngineLimitError, ValueError) as error:
        problem = str(error)
    knobs.put_panes(usual_panes(source))
    try:
        return bundle_of(source, knobs.panes_now()), problem
    except (EngineLimitError, ValueError) as error:
        return None, str(error)


@st.cache_data(max_entries=64, show_spinner=False)
def _provenance_of(bundle: str) -> str:
    return provenance(state.traces_in(bundle))


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
    elif kinds == {Seconds.MODELLED} and origin.runner is RunnerKind.SCRIPTED:
        seconds = "Seconds: modelled from a cost per step and per token"
    elif kinds == {Seconds.MODELLED}:
        seconds = "Seconds: modelled from what the recorded steps cost"
    else:
        seconds = "Seconds: measured where this is the recorded schedule, else modelled"
    parts = [tokens, "Schedule: counted from a run of this engine", seconds]
    if origin.model is not None:
        parts.append(f"{origin.model.name}, {origin.model.dtype}, {origin.model.device}")
        parts.append(exactness(origin.model.exact, recorded=origin.runner is RunnerKind.RECORDED))
        parts.append(f"{origin.machine}, {origin.date[:10]}")
    return " · ".join(state.plain(part) for part in parts if part)
