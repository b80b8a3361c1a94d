"""The stage: the player, and under it what runs live: the button, progress, cancel.

Owns: the live job of this session. Must not know: the charts, torch. While a job goes on the stage alone reruns, twice
a second; the player keeps its place and its cursor, since it is the same element before, during and after a live run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from batchviz.jobs import JobState, JobView, QueueFullError
from batchviz.link import PaneChoice
from batchviz.panes import config_of
from batchviz.playback import playback
from batchviz.scenario import ScenarioError
from batchviz.trace import TraceStatus
from batchviz.ui import address, chat, figures, files, state
from batchviz.ui.player import show_player
from batchviz.ui.prompts import Row, keep_rows, live_scenario, show_prompts
from batchviz.ui.source import Source
from batchviz.ui.words import WORDS

POLL_S = 0.5
PATIENCE_S = 6.0
WAITED = "waited"  # bool: the page waits for the player to be seen
HAS_FIGURES = "has_figures"  # bool: whether there is anything to draw under the player
LIVE_WORDS = "On the real model, on this server's processor. The first run gets the weights (93 MB)."
NOTICE = "live_notice"  # str: what to say about the last live run
LIVE_SOURCE = "live_source"  # str: which source the live job was made from

Panes = tuple[PaneChoice, ...]


def live_is_on() -> bool:
    """True while this session has a job that is queued or running."""
    return st.session_state.get(state.JOB) is not None


def stage(source: Source, bundle: str | None) -> None:
    """Draws the player: `bundle` while nothing runs live, else the live run as it comes."""
    st.fragment(_stage, run_every=POLL_S if live_is_on() else None)(bundle, state.kept_run_id(source.key))


def show_controls(source: Source, panes: Panes, bundle: str | None) -> None:
    """Under the knobs: the button, a file in, a link and files out, the prompts."""
    live, switch, words, opening, sharing = st.columns([1.3, 1.2, 2.3, 1.15, 1.0], vertical_alignment="center")
    may_run = not live_is_on() and source.may_run_live
    pressed = may_run and _show_button(live, switch, words)
    with opening:
        files.show_open(disabled=live_is_on())
    with sharing:
        st.fragment(files.show_share, key=files.FRAGMENT)(bundle)
    if not may_run:
        chat.keep_switch()
    else:
        notice = st.session_state.pop(NOTICE, None)
        if notice is not None:
            st.warning(state.plain(notice), icon=":material/info:")
        rows = show_prompts(source)
        if pressed:
            _start(source, rows, panes)


def _stage(bundle: str | None, run_id: str | None) -> None:
    job_id = st.session_state.get(state.JOB)
    view = state.shared_worker().view(job_id, state.viewer()) if job_id is not None else None
    if job_id is not None and (view is None or view.state.is_over):
        _end(view, state.shared_worker().traces(job_id))
        st.rerun(scope="app")
    if view is not None and view.num_steps:
        payload = _live_payload(view.id, view.version)
    else:
        payload = state.payload_of(bundle, run_id) if bundle is not None else playback(())
    show_player(
        payload,
        key=state.PLAYER,
        seek=address.seek_now(),
        controls=address.has_controls(),
        on_step_change=_rested,
        on_speed_change=_speeded,
        on_painted_change=_painted,
    )
    if view is not None:
        _show_progress(view)
    elif bundle is None:
        st.info("These requests have no recorded answers yet. **Run it live** lets the model answer them.")


@st.cache_data(max_entries=16, show_spinner=False)
def _live_payload(job_id: int, version: int) -> dict[str, Any]:
    """The player's payload of a run that goes on; made once, however many look at it."""
    traces = state.shared_worker().traces(job_id)
    return playback(traces, version=version, live=True, run_id=state.live_run_id(job_id))


def _painted() -> None:
    """The player is seen: now the rest of the page, which takes a browser longer than the player."""
    if not st.session_state.get(state.PAINTED):
        st.session_state[state.PAINTED] = True
        st.rerun()


def wait_for_player() -> None:
    """Draws nothing; if the player is not seen in a while (a browser that refuses its script), the rest comes without."""
    st.fragment(_tire_of_waiting, run_every=PATIENCE_S)()


def _tire_of_waiting() -> None:
    if st.session_state.get(WAITED):
        st.session_state[state.PAINTED] = True
        st.rerun(scope="app")
    st.session_state[WAITED] = True


def _rested() -> None:
    """The player came to rest."""
    st.session_state[address.STEP] = st.session_state[state.PLAYER].get("step")
    _redraw()


def _speeded() -> None:
    """Somebody chose another speed; where the player rests is not said with it."""
    st.session_state[address.SPEED] = float(st.session_state[state.PLAYER]["speed"])
    _redraw()


def _redraw() -> None:
    """Only what depends on step and speed is drawn anew.

    Unless something else was done in the same moment: Streamlit makes one run of both, which must be a whole one.
    """
    if address.is_drawn() and not live_is_on():
        has_figures = bool(st.session_state.get(HAS_FIGURES))
        st.rerun([figures.FRAGMENT, files.FRAGMENT] if has_figures else files.FRAGMENT)


def _show_progress(view: JobView) -> None:
    status, stop = st.columns([5, 1], vertical_alignment="center")
    status.progress(min(view.fraction or 0.0, 1.0), text=state.plain(_words(view)))
    if view.is_chat:
        chat.show_box(view)
    stop.button("Cancel", key="cancel_live", icon=":material/stop_circle:", width="stretch", on_click=_cancel)


def _show_button(place: DeltaGenerator, switch: DeltaGenerator, words: DeltaGenerator) -> bool:
    with switch:
        chat.show_switch()
    can_run = state.has_model()
    words.caption(LIVE_WORDS if can_run else state.NO_MODEL)
    return place.button(
        "Run it live",
        type="primary",
        key=address.RUN_BUTTON,
        icon=":material/play_circle:",
        width="stretch",
        help=WORDS["live"],
        disabled=not can_run,
    )


def _start(source: Source, rows: Sequence[Row], panes: Panes) -> None:
    try:
        chosen = live_scenario(source.scenario, rows, state.limits())
        configs = [config_of(pane) for pane in panes]
        st.session_state[state.JOB] = state.shared_worker().submit(
            chosen, configs, viewer=state.viewer(), is_chat=chat.is_on()
        )
        st.session_state[LIVE_SOURCE] = source.key
        keep_rows(source, rows)
        chat.begin()
    except (ScenarioError, QueueFullError, ValueError) as error:
        st.session_state[NOTICE] = str(error)
    st.rerun()


def _words(view: JobView) -> str:
    if view.state is JobState.QUEUED:
        others = "one run is" if view.place == 1 else f"{view.place} runs are"
        return f"In the queue: {others} before yours; expected wait: {wait_words(view.wait_s)}{_shared(view)}"
    if view.state is JobState.LOADING:
        return view.message[:1].upper() + view.message[1:] + _shared(view)
    if view.is_chat:
        return f"Running live on the model: all runs together, step {max(view.num_steps, default=0)}"
    begun = [steps for steps in view.num_steps if steps] or [0]
    return f"Running live on the model: run {len(begun)} of {len(view.num_steps)}, step {begun[-1]}{_shared(view)}"


def wait_words(seconds: float | None) -> str:
    """A wait as one would say it: no more exact than it is known."""
    if seconds is None:
        return "not known yet"
    if seconds < 5:
        return "a few seconds"
    return f"about {max(1, round(seconds / 10)) * 10} s" if seconds < 95 else f"about {round(seconds / 60)} min"


def _shared(view: JobView) -> str:
    others = view.num_viewers - 1
    if others < 1:
        return ""
    return f" (shared with {others} other{'s' if others > 1 else ''} who asked for the same)"


def _cancel() -> None:
    job_id = st.session_state.get(state.JOB)
    if job_id is not None:
        state.shared_worker().cancel(job_id, state.viewer())


def _end(view: JobView | None, traces: Sequence[Any]) -> None:
    """A finished run replaces the recorded one; anything else is said, and the recorded one comes back."""
    st.session_state[state.JOB] = None
    if view is None:
        st.session_state[NOTICE] = "the live run is not known any more (the server was restarted); run it again"
    elif view.state is JobState.DONE and all(trace.status is TraceStatus.COMPLETE for trace in traces):
        state.keep_live_run(st.session_state[LIVE_SOURCE], traces, state.live_run_id(view.id))
        st.session_state[NOTICE] = chat.last_word(view) if view.is_chat else None
    elif view.state is JobState.CANCELLED:
        st.session_state[NOTICE] = "the live run was cancelled; this is the run from before"
    else:
        st.session_state[NOTICE] = f"the live run failed: {view.message}"
