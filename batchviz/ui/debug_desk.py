"""Which debugging session this visitor works at: what it runs on, when it begins anew, what it is told if there is no seat.

Owns: the choice of preset, policy, slots and tokens, and the desk that follows from it. Must not know: stepping, views.
Sessions live in the registry of this server, engines on the real model in the worker's child; the visitor's session state
keeps a key alone.
"""

from __future__ import annotations

import time

import streamlit as st

from batchviz.debug_registry import SEATS_TAKEN, Desk, NoSeatError, Registry
from batchviz.debug_remote import RemoteStart
from batchviz.debug_run import DebugError
from batchviz.debug_start import RecordedStart, ScriptedStart
from batchviz.debugger import DebugSession
from batchviz.presets import PRESET_NAMES
from batchviz.recordings import load_recording
from batchviz.runs import DEFAULT_SLOT_CAPACITY, make_config
from batchviz.scenario import MAX_SLOTS, Scenario
from batchviz.scheduler import Policy
from batchviz.trace import RunConfig
from batchviz.ui import state
from batchviz.ui.source import OWN, preset_source, source_titles

PRESET, POLICY, SLOTS, TOKENS = "debug_preset", "debug_policy", "debug_slots", "debug_tokens"
RENEW = "debug_renew"  # bool: the knobs were turned
NUM_MOVES = "debug_moves"  # int: grows whenever the board is to show another step
RECORDED, LIVE = "recorded", "the live model"
MAX_LIVE_SLOTS = 16  # of a session on the model: each slot's KV cache is memory that others want as well
CLOSED = "The session was closed, since nobody used it for ten minutes. Here is a new one."


@st.cache_resource(show_spinner=False)
def registry() -> Registry:
    """The desks of this server."""
    return Registry(time.monotonic)


def this_desk() -> Desk:
    """This visitor's desk; a new one in a new session, when the knobs were turned, or when the old one was closed.

    Streamlit may begin a script anew while the one before still waits for the model: then both begin a session, under
    one key, and the later takes the place of the earlier.
    """
    key = state.viewer()
    desk = None if st.session_state.get(RENEW) else registry().find(key)
    if desk is not None:
        return desk
    st.session_state.setdefault(PRESET, PRESET_NAMES[0])
    st.session_state.setdefault(POLICY, str(Policy.STATIC))
    st.session_state.setdefault(SLOTS, preset_source(st.session_state[PRESET]).scenario.num_slots)
    was_closed = bool(st.session_state.get(NUM_MOVES)) and not st.session_state.get(RENEW)
    if was_closed:
        st.session_state[TOKENS] = RECORDED  # whoever slept takes no seat
    desk = _begin(key)
    st.session_state[RENEW] = False
    move()
    if was_closed:
        desk.message = CLOSED
    return desk


def move() -> None:
    """The board is to show another step."""
    st.session_state[NUM_MOVES] = int(st.session_state.get(NUM_MOVES, 0)) + 1


def is_live() -> bool:
    return st.session_state.get(TOKENS) == LIVE


def show_choice() -> None:
    """What the session runs on."""
    for key in (PRESET, POLICY, SLOTS, TOKENS):
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]  # Streamlit forgets what is not drawn on other pages
    titles = {key: title for key, title in source_titles().items() if key != OWN}
    preset, tokens, policy, slots = st.columns([3, 2, 2, 1.2], vertical_alignment="bottom")
    preset.selectbox("Preset", list(titles), key=PRESET, format_func=lambda key: titles.get(key, key), on_change=_renew)
    has_words = preset_source(st.session_state[PRESET]).scenario.has_words
    tokens.segmented_control(
        "Tokens", [RECORDED, LIVE] if has_words else [RECORDED], key=TOKENS, required=True, on_change=_renew
    )
    policy.selectbox("Policy", [str(one) for one in Policy], key=POLICY, on_change=_renew)
    slots.number_input("Slots", 1, most_slots(), key=SLOTS, on_change=_renew)


def most_slots() -> int:
    return MAX_LIVE_SLOTS if is_live() else MAX_SLOTS


def _renew() -> None:
    st.session_state[RENEW] = True


def _begin(key: str) -> Desk:
    """A new desk of what the knobs say, its first step made."""
    scenario = preset_source(str(st.session_state[PRESET])).scenario
    if not scenario.has_words:
        st.session_state[TOKENS] = RECORDED
    st.session_state.setdefault(TOKENS, RECORDED)
    st.session_state[SLOTS] = min(int(st.session_state[SLOTS]), most_slots())
    config = make_config(Policy(st.session_state[POLICY]), int(st.session_state[SLOTS]))
    problem = SEATS_TAKEN if state.has_model() else state.NO_MODEL
    if is_live() and state.has_model() and registry().has_seat(key):
        try:
            return _begin_live(key, scenario, config)
        except (NoSeatError, DebugError) as error:
            problem = str(error)
    session = _recorded(str(st.session_state[PRESET]), scenario, config)
    session.step()
    desk = registry().open(key, session)
    if is_live():
        st.session_state[TOKENS] = RECORDED
        desk.message, desk.is_problem = problem, True
    return desk


def _begin_live(key: str, scenario: Scenario, config: RunConfig) -> Desk:
    """Nothing is drawn between the engine's beginning and the desk that owns it: a script may be stopped there."""
    with st.spinner("Getting the model ready; the very first time its weights are fetched."):
        session = DebugSession(RemoteStart(state.shared_worker().ask, scenario), config)
        session.step()
        return registry().open(key, session, on_model=True)


def _recorded(key: str, scenario: Scenario, config: RunConfig) -> DebugSession:
    if scenario.has_words:
        return DebugSession(RecordedStart(load_recording(key)), config)
    return DebugSession(ScriptedStart(scenario, DEFAULT_SLOT_CAPACITY), config)
