"""The link to what is on show: the address bar, opened links, the step and speed at which the player rests.

Owns: the session's memory of the view, and when the address bar is read and written. Must not know: layout, charts.
The address bar says preset, panes and chart; step and speed stand only in the link that is copied, or every pause
would be an entry of the browser's history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from batchviz.link import THEMES, PaneChoice, View, panes_from_text, panes_to_text, view_from_params, view_to_params
from batchviz.presets import PRESET_NAMES
from batchviz.scenario import ScenarioError
from batchviz.ui import knobs
from batchviz.ui.source import (
    OWN,
    OWN_SCENARIO,
    Source,
    source_of,
    source_titles,
    take_scenario,
    usual_panes,
)

CHARTS = ("requests", "slots", "queue", "tokens", "kv-memory", "waits")
ADDRESS = "address"  # str: the query that this session read or wrote last
AWAY = "away"  # bool: another page was shown since
KEPT = "kept"  # str: source and panes as of the last run, for when the widgets are forgotten
DRAWN = "drawn"  # str: what the page was last drawn whole for
RUN_BUTTON = "run_live"
UPLOAD = "upload"
STEP = "step"  # int: where the player came to rest last
SPEED = "speed"  # float: how fast it plays
THEME = "theme"  # str: what the opened link asked for
KEEP_THEME = "keep_theme"  # bool: whether the link that is copied says the theme
SEEK = "seek"  # int: how often the page has moved the player
SEEK_STEP = "seek_step"
SEEK_SPEED = "seek_speed"
SEEK_PLAY = "seek_play"
CONTROLS = "controls"  # bool: whether the player has its buttons


def open_view() -> None:
    """Before anything is drawn: takes an opened link, or what was on show before another page was."""
    query = _query(st.query_params.to_dict())
    was_away = bool(st.session_state.pop(AWAY, False))
    is_new = ADDRESS not in st.session_state
    if is_new or (not was_away and query != st.session_state[ADDRESS]) or (was_away and query):
        st.session_state[ADDRESS] = query
        _take_view(view_from_params(st.query_params.to_dict()))
    elif not knobs.are_set() or "preset" not in st.session_state:
        source, panes = kept()
        st.session_state["preset"] = source.key
        knobs.put_panes(panes)
        st.session_state.setdefault("chart", CHARTS[0])
        if st.session_state.get(STEP) is not None:
            _seek(int(st.session_state[STEP]), None)


def kept() -> tuple[Source, tuple[PaneChoice, ...]]:
    """What was on show last, for a page without knobs; the first preset in a new session."""
    key, _, panes = str(st.session_state.get(KEPT, "")).partition("|")
    source = source_of(key)
    return source, panes_from_text(panes) or usual_panes(source)


def leave_view() -> None:
    """Said by every other page: the address bar is its own now."""
    st.session_state[AWAY] = True


def is_drawn() -> bool:
    """False if a knob was turned, a file opened or a button pressed since the page was last drawn whole."""
    return not st.session_state.get(RUN_BUTTON) and st.session_state.get(DRAWN) == _signature()


def mark_drawn() -> None:
    """Said when the page has been drawn whole."""
    st.session_state[DRAWN] = _signature()


def _signature() -> str:
    uploaded = st.session_state.get(UPLOAD)
    file_id = "" if uploaded is None else uploaded.file_id
    return f"{st.session_state['preset']}|{panes_to_text(knobs.panes_now())}|{file_id}"


def take_source() -> None:
    """A preset, or one's own, brings its own panes."""
    knobs.put_panes(usual_panes(source_of(str(st.session_state["preset"]))))
    st.session_state[STEP] = None


def _take_view(view: View) -> None:
    key = view.preset or PRESET_NAMES[0]
    if view.own is not None:
        try:
            take_scenario(view.own, view.own.title)
            key = OWN
        except ScenarioError:
            key = PRESET_NAMES[0]
    st.session_state["preset"] = key if key in source_titles() else PRESET_NAMES[0]
    source = source_of(str(st.session_state["preset"]))
    knobs.put_panes(view.panes or usual_panes(source))
    st.session_state["chart"] = view.chart if view.chart in CHARTS else CHARTS[0]
    st.session_state[STEP] = view.step
    st.session_state[SPEED] = view.speed
    st.session_state[THEME] = view.theme
    st.session_state[KEEP_THEME] = view.theme is not None
    st.session_state[CONTROLS] = view.controls
    if view.step is not None or view.speed is not None or view.play is not None:
        _seek(view.step, view.speed, view.play)


def _seek(step: int | None, speed: float | None, play: bool | None = None) -> None:
    st.session_state[SEEK] = int(st.session_state.get(SEEK, 0)) + 1
    st.session_state[SEEK_STEP], st.session_state[SEEK_SPEED] = step, speed
    st.session_state[SEEK_PLAY] = step is None if play is None else play


def seek_now() -> Mapping[str, Any] | None:
    """What the player is told, see ui/player.py; None if the page never moved it."""
    if SEEK not in st.session_state:
        return None
    step, play = st.session_state[SEEK_STEP], st.session_state[SEEK_PLAY]
    step = 0 if step is None and not play else step  # a player that is not to play rests at its beginning
    return {"n": st.session_state[SEEK], "step": step, "speed": st.session_state[SEEK_SPEED], "play": play}


def has_controls() -> bool:
    """Whether the player is to have its buttons."""
    return bool(st.session_state.get(CONTROLS, True))


def view_now() -> View:
    """All that is on show, step and speed too; what is usual for its source is left out."""
    source = source_of(str(st.session_state["preset"]))
    panes = knobs.panes_now()
    own = source.scenario if source.key == OWN and st.session_state.get(OWN_SCENARIO) else None
    chart = st.session_state.get("chart")
    return View(
        preset=None if own is not None or source.key in (OWN, PRESET_NAMES[0]) else source.key,
        own=own,
        panes=() if panes == usual_panes(source) else panes,
        chart=None if chart == CHARTS[0] else chart,
        step=st.session_state.get(STEP),
        speed=st.session_state.get(SPEED),
        theme=(theme_now() or st.session_state.get(THEME)) if st.session_state.get(KEEP_THEME) else None,
    )


def theme_now() -> str | None:
    """What this browser shows: light or dark; None where there is no browser."""
    theme = st.context.theme.type
    return theme if theme in THEMES else None


def write_address() -> None:
    """After the knobs are drawn: the address bar says what is on show, and the session keeps it."""
    st.session_state[KEPT] = f"{st.session_state['preset']}|{panes_to_text(knobs.panes_now())}"
    params = view_to_params(replace(view_now(), step=None, speed=None)) or {}
    query = _query(params)
    passing = ("step", "speed", "play", "controls")
    read = {key: value for key, value in st.query_params.to_dict().items() if key not in passing}
    if query != _query(read):
        st.query_params.from_dict(params)
        st.session_state[ADDRESS] = query


def link_now() -> str | None:
    """The whole link; None if it cannot say what is on show: a long scenario, a trace file, a live run."""
    source = source_now()
    if source.is_trace or source.is_live:
        return None
    params = view_to_params(view_now())
    if params is None:
        return None
    base = str(st.context.url or "").split("?")[0]
    return f"{base}?{_query(params)}" if params else base


def source_now() -> Source:
    return source_of(str(st.session_state["preset"]))


def _query(params: Mapping[str, str]) -> str:
    return urlencode(params, safe=",")
