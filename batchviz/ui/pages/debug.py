"""The page *Debug*: one run driven by hand, with every decision of the step on show.

Owns: the layout, and what its buttons do. Must not know: how a step is made or explained. Sessions live in the registry of
this server, not in the visitor's session state, which keeps their key alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import streamlit as st

from batchviz.breakpoints import FORMS, parse_breakpoint
from batchviz.debug_registry import Desk, Registry
from batchviz.debug_start import RecordedStart, ScriptedStart
from batchviz.debugger import PHASES, DebugSession, Stop
from batchviz.playback import playback
from batchviz.presets import PRESET_NAMES
from batchviz.recordings import load_recording
from batchviz.runs import DEFAULT_SLOT_CAPACITY, make_config
from batchviz.scenario import MAX_SLOTS
from batchviz.scheduler import Policy
from batchviz.timeline import letter
from batchviz.ui import address, state
from batchviz.ui.debug_views import VIEWS
from batchviz.ui.player import show_player
from batchviz.ui.source import OWN, source_of, source_titles
from batchviz.ui.theme import PAGE_PADDING

DESK = "debug_desk"  # str: the key of this visitor's desk
PRESET, POLICY, SLOTS = "debug_preset", "debug_policy", "debug_slots"
NUM_MOVES = "debug_moves"  # int: grows whenever the board is to show another step
CLOSED = "The session was closed, since nobody used it for ten minutes. Here is a new one."
MAX_NAMED = 12
FEW_STEPS = 1_000  # `to the end` and a breakpoint look no further at once


@st.cache_resource(show_spinner=False)
def _registry() -> Registry:
    """The desks of this server."""
    return Registry(time.monotonic)


def debug_page() -> None:
    """Draws the page: the board and the buttons at the left, one view of the step at the right."""
    st.html(f"<style>.stMainBlockContainer{{padding:{PAGE_PADDING}}}</style>")
    address.leave_view()
    st.markdown("### Stop anywhere, see everything, know why")
    st.caption(
        "One run of this engine, a step at a time. The tokens are recorded from the model, or lengths alone; the schedule is "
        "made here, while you step. The real model is debugged in the terminal: `python -m batchviz debug`."
    )
    desk = _desk()
    _show_choice()
    _show_buttons(desk)
    board, views = st.columns([1.25, 1], gap="large")
    with board:
        _show_board(desk)
    with views:
        view = st.segmented_control("What to see", list(VIEWS), default="Decisions", key="debug_view", required=True)
        st.caption(_names(desk))
        VIEWS[view or "Decisions"](desk.current)
    _show_changes(desk)


def _desk() -> Desk:
    """This visitor's desk; a new one in a new session, or when the old one was closed."""
    key = st.session_state.get(DESK)
    desk = _registry().find(key) if key else None
    if desk is not None:
        return desk
    st.session_state.setdefault(PRESET, PRESET_NAMES[0])
    st.session_state.setdefault(POLICY, str(Policy.STATIC))
    st.session_state.setdefault(SLOTS, source_of(st.session_state[PRESET]).scenario.num_slots)
    _begin()
    desk = _registry().find(st.session_state[DESK])
    assert desk is not None
    if key:
        desk.message = CLOSED
    return desk


def _begin() -> None:
    """A new session of what the knobs say, its first step made."""
    source = source_of(str(st.session_state[PRESET]))
    config = make_config(Policy(st.session_state[POLICY]), int(st.session_state[SLOTS]))
    if source.scenario.has_words:
        session = DebugSession(RecordedStart(load_recording(source.key)), config)
    else:
        session = DebugSession(ScriptedStart(source.scenario, DEFAULT_SLOT_CAPACITY), config)
    session.step()
    if st.session_state.get(DESK):
        _registry().close(str(st.session_state[DESK]))
    st.session_state[DESK] = _registry().open(session)
    _move()


def _show_choice() -> None:
    for key in (PRESET, POLICY, SLOTS):
        st.session_state[key] = st.session_state[key]  # Streamlit forgets what is not drawn on other pages
    titles = {key: title for key, title in source_titles().items() if key in _presets()}
    preset, policy, slots = st.columns([3, 2, 1], vertical_alignment="bottom")
    preset.selectbox("Preset", list(titles), key=PRESET, format_func=lambda key: titles.get(key, key), on_change=_begin)
    policy.selectbox("Policy", [str(one) for one in Policy], key=POLICY, on_change=_begin)
    slots.number_input("Slots", 1, MAX_SLOTS, key=SLOTS, on_change=_begin)


def _presets() -> list[str]:
    return [key for key in source_titles() if key != OWN]


def _show_board(desk: Desk) -> None:
    traces = tuple(session.trace for session in desk.sessions) if _is_beside(desk) else (desk.current.trace,)
    run_id = f"debug-{st.session_state[DESK]}-{desk.shown}-{len(traces)}"
    seek = {"n": int(st.session_state.get(NUM_MOVES, 0)), "step": desk.current.shown, "play": False}
    show_player(playback(traces[-2:], run_id=run_id, version=desk.current.num_steps), key="debug_player", seek=seek)


def _names(desk: Desk) -> str:
    """Which letter of the board is which request."""
    ids = [request.id for request in desk.current.trace.scenario.requests]
    named = [f"**{letter(place)}** {state.plain(request_id)}" for place, request_id in enumerate(ids[:MAX_NAMED])]
    return " · ".join(named) + (f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else "")


def _is_beside(desk: Desk) -> bool:
    return len(desk.sessions) > 1 and bool(st.session_state.get("debug_beside", True))


def _show_buttons(desk: Desk) -> None:
    session = desk.current
    row = st.container(horizontal=True, key="debug_buttons")
    buttons = (
        ("Back", ":material/skip_previous:", lambda: session.back(), "b", session.shown == 0),
        ("Into", ":material/subdirectory_arrow_right:", lambda: session.step_into(), "i", not session.has_more),
        ("Step", ":material/skip_next:", lambda: session.step(), "n", not session.has_more),
        ("Next event", ":material/fast_forward:", lambda: session.next_event(), "e", not session.has_more),
        ("Continue", ":material/play_arrow:", partial(_continue, desk), "g", not session.has_more),
        ("Reverse", ":material/fast_rewind:", partial(_reverse, desk), None, session.shown == 0),
    )
    for label, icon, deed, key, disabled in buttons:
        row.button(
            label,
            icon=icon,
            key=f"debug_{label}",
            shortcut=key,
            disabled=disabled,
            on_click=_do,
            args=(desk, deed),
        )
    reached = PHASES.index(session.phase)
    rail = [
        f"**{phase}**" if place == reached else str(phase) for place, phase in enumerate(PHASES) if place <= reached
    ]
    facts = session.facts()
    st.markdown(f"Step **{facts.snapshot.step}** of 0–{session.num_steps - 1} made so far · " + " → ".join(rail))
    if desk.message:
        (st.warning if desk.is_problem else st.info)(state.plain(desk.message))


def _show_changes(desk: Desk) -> None:
    """Breakpoints, and what can be done about what lies ahead."""
    stops, ahead = st.columns(2, gap="large")
    with stops:
        st.markdown("**Breakpoints**")
        with st.form("debug_break", clear_on_submit=True, border=False):
            text, add = st.columns([3, 1], vertical_alignment="bottom")
            text.text_input(
                "Stop where",
                key="debug_condition",
                placeholder="finished *",
                help="  \n".join(f"`{form}`" for form in FORMS),
            )
            if add.form_submit_button("Add", width="stretch"):
                desk.do(partial(_add_breakpoint, desk, str(st.session_state["debug_condition"])))
                st.rerun()
        for place, one in enumerate(desk.breakpoints):
            said, gone = st.columns([5, 1], vertical_alignment="center")
            said.code(one.text, language=None)
            gone.button("Delete", key=f"debug_delete_{place}", on_click=desk.breakpoints.remove, args=(one,))
    with ahead:
        st.markdown("**Change what lies ahead**")
        policy, slots, fork = st.columns([2, 1, 1], vertical_alignment="bottom")
        policy.selectbox("Go on as", [str(one) for one in reversed(Policy)], key="debug_fork_policy")
        slots.number_input("with slots", 1, MAX_SLOTS, value=desk.current.trace.num_slots, key="debug_fork_slots")
        fork.button(
            "Fork", icon=":material/call_split:", width="stretch", on_click=_do, args=(desk, partial(_fork, desk))
        )
        ids = [request.id for request in desk.current.trace.scenario.requests]
        who, leave = st.columns([3, 1], vertical_alignment="bottom")
        who.selectbox("A user leaves", ids, key="debug_who")
        leave.button("Abort", width="stretch", on_click=_do, args=(desk, partial(_abort, desk)))
        if len(desk.sessions) > 1:
            st.toggle("Show the run and its fork side by side", value=True, key="debug_beside")
            names = [f"{place + 1}: {session.trace.config.policy}" for place, session in enumerate(desk.sessions)]
            st.radio(
                "The run that the buttons drive",
                range(len(names)),
                index=desk.shown,
                format_func=lambda place: names[place],
                horizontal=True,
                key=f"debug_run_{len(names)}",
                on_change=_choose_run,
                args=(desk,),
            )


def _do(desk: Desk, deed: Callable[[], object]) -> None:
    """A button was pressed."""

    def said() -> str | None:
        found = deed()
        return found if isinstance(found, str) and found not in PHASES else None

    desk.do(said)
    _move()


def _move() -> None:
    st.session_state[NUM_MOVES] = int(st.session_state.get(NUM_MOVES, 0)) + 1


def _continue(desk: Desk) -> str:
    return _told(desk.current.run_until(desk.breakpoints, FEW_STEPS))


def _reverse(desk: Desk) -> str:
    return _told(desk.current.run_until(desk.breakpoints, FEW_STEPS, backwards=True))


def _told(stop: Stop) -> str:
    return f"Stopped at step {stop.step}: {stop.message}."


def _add_breakpoint(desk: Desk, text: str) -> str:
    desk.breakpoints.append(parse_breakpoint(text))
    return f"Stops from now on where: {desk.breakpoints[-1].text}"


def _fork(desk: Desk) -> str:
    config = make_config(Policy(st.session_state["debug_fork_policy"]), int(st.session_state["debug_fork_slots"]))
    desk.sessions.append(desk.current.fork(config))
    del desk.sessions[1:-1]  # the run, and its latest fork
    desk.shown = 1
    return f"The same {desk.current.num_steps} steps, replayed and checked; from here on {config.policy}."


def _abort(desk: Desk) -> str:
    who = str(st.session_state["debug_who"])
    desk.current.abort(who)
    return f"{who} leaves before the next step."


def _choose_run(desk: Desk) -> None:
    desk.shown = int(st.session_state[f"debug_run_{len(desk.sessions)}"])
    _move()
