"""Under the board of the page *Debug*: breakpoints, and what can be done about what lies ahead.

Owns: those forms, and what they ask of the session. Must not know: views, how a session begins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from batchviz.breakpoints import FORMS, parse_breakpoint
from batchviz.debug_registry import Desk
from batchviz.debugger import PHASES
from batchviz.runs import make_config
from batchviz.scenario import ScenarioRequest, free_id
from batchviz.scheduler import Policy
from batchviz.trace import RunnerKind
from batchviz.ui.debug_desk import most_slots, move

MAX_WORDS = 400  # characters of a request that is written here
MAX_ANSWER = 64  # tokens
MAX_PROMPT = 512  # tokens, where lengths are all there is


def show_breakpoints(desk: Desk) -> None:
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


def show_changes(desk: Desk) -> None:
    """Fork, abort, inject."""
    st.markdown("**Change what lies ahead**")
    policy, slots, fork = st.columns([2, 1, 1], vertical_alignment="bottom")
    policy.selectbox("Go on as", [str(one) for one in reversed(Policy)], key="debug_fork_policy")
    usual = min(desk.current.trace.num_slots, most_slots())
    slots.number_input("with slots", 1, most_slots(), value=usual, key="debug_fork_slots")
    fork.button("Fork", icon=":material/call_split:", width="stretch", on_click=do, args=(desk, partial(_fork, desk)))
    ids = [request.id for request in desk.current.trace.scenario.requests]
    who, leave = st.columns([3, 1], vertical_alignment="bottom")
    who.selectbox("A user leaves", ids, key="debug_who")
    leave.button("Abort", width="stretch", on_click=do, args=(desk, partial(_abort, desk)))
    _show_inject(desk)
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


def do(desk: Desk, deed: Callable[[], object]) -> None:
    """A button was pressed."""

    def said() -> str | None:
        found = deed()
        return found if isinstance(found, str) and found not in PHASES else None

    desk.do(said)
    move()


def _show_inject(desk: Desk) -> None:
    if not desk.on_model and desk.current.trace.origin.runner is not RunnerKind.SCRIPTED:
        st.caption("A recording has no tokens for a new request. The live model answers one: choose it above.")
        return
    with st.form("debug_inject", clear_on_submit=True, border=False):
        what, length, send = st.columns([3, 1, 1], vertical_alignment="bottom")
        if desk.on_model:
            what.text_input(
                "A request arrives", max_chars=MAX_WORDS, key="debug_words", placeholder="Name three fruits."
            )
        else:
            what.number_input("A request arrives, prompt tokens", 1, MAX_PROMPT, value=20, key="debug_prompt_tokens")
        length.number_input("Tokens", 1, MAX_ANSWER, value=16, key="debug_answer", help="The most it may answer.")
        if send.form_submit_button("Inject", width="stretch"):
            desk.do(partial(_inject, desk))
            st.rerun()


def _add_breakpoint(desk: Desk, text: str) -> str:
    desk.breakpoints.append(parse_breakpoint(text))
    return f"Stops from now on where: {desk.breakpoints[-1].text}"


def _fork(desk: Desk) -> str:
    config = make_config(Policy(st.session_state["debug_fork_policy"]), int(st.session_state["debug_fork_slots"]))
    desk.fork_to(desk.current.fork(config))
    return f"The same {desk.current.num_steps} steps, replayed and checked; from here on {config.policy}."


def _abort(desk: Desk) -> str:
    who = str(st.session_state["debug_who"])
    desk.current.abort(who)
    return f"{who} leaves before the next step."


def _inject(desk: Desk) -> str:
    session = desk.current
    known = {request.id for request in session.trace.scenario.requests}
    name = free_id("new", known)
    length = int(st.session_state["debug_answer"])
    if desk.on_model:
        words = str(st.session_state["debug_words"]).strip()
        if not words:
            raise ValueError("a request has some words; write them first")
        asked = ScenarioRequest(name, length, prompt=words, arrival=session.now)
    else:
        prompt_tokens = int(st.session_state["debug_prompt_tokens"])
        asked = ScenarioRequest(name, length, prompt_tokens=prompt_tokens, output_tokens=length, arrival=session.now)
    traced = session.inject(asked)
    return f"{name} arrives with the next step: {traced.num_prompt_tokens} prompt tokens."


def _choose_run(desk: Desk) -> None:
    desk.shown = int(st.session_state[f"debug_run_{len(desk.sessions)}"])
    move()
