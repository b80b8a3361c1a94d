"""The page *Debug*: one run driven by hand, with every decision of the step on show.

Owns: the layout, and the buttons that step. Must not know: how a step is made or explained, how a session begins.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from batchviz.debug_registry import Desk
from batchviz.debugger import PHASES, Stop
from batchviz.playback import playback
from batchviz.timeline import letter
from batchviz.ui import address, state
from batchviz.ui.debug_changes import do, show_breakpoints, show_changes
from batchviz.ui.debug_desk import NUM_MOVES, show_choice, this_desk
from batchviz.ui.debug_views import VIEWS
from batchviz.ui.player import show_player
from batchviz.ui.theme import page_style

MAX_NAMED = 12
FEW_STEPS = 1_000  # a breakpoint looks no further at once
FEW_LIVE_STEPS = 60  # each of which takes the model its time


def debug_page() -> None:
    """Draws the page: the board and the buttons at the left, one view of the step at the right."""
    st.html(page_style(more=".st-key-debug_view div{flex-wrap:wrap}"))
    address.leave_view()
    st.markdown("### Stop anywhere, see everything, know why")
    st.caption(
        "One run of this engine, a step at a time. The tokens are recorded from the model, or come from it now, while you "
        "step; the schedule is made here. The same in a terminal: `python -m batchviz debug`."
    )
    desk = this_desk()
    show_choice()
    _show_buttons(desk)
    board, views = st.columns([1.25, 1], gap="large")
    with board:
        _show_board(desk)
    with views:
        view = st.pills("What to see", list(VIEWS), default="Decisions", key="debug_view", required=True)
        st.caption(_names(desk))
        VIEWS[view or "Decisions"](desk.current)
    stops, ahead = st.columns(2, gap="large")
    with stops:
        show_breakpoints(desk)
    with ahead:
        show_changes(desk)


def _show_board(desk: Desk) -> None:
    traces = tuple(session.trace for session in desk.sessions) if _is_beside(desk) else (desk.current.trace,)
    run_id = f"debug-{desk.name}-{desk.shown}-{len(traces)}"
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
            on_click=do,
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


def _continue(desk: Desk) -> str:
    return _told(desk.current.run_until(desk.breakpoints, FEW_LIVE_STEPS if desk.on_model else FEW_STEPS))


def _reverse(desk: Desk) -> str:
    return _told(desk.current.run_until(desk.breakpoints, FEW_STEPS, backwards=True))


def _told(stop: Stop) -> str:
    return f"Stopped at step {stop.step}: {stop.message}."
