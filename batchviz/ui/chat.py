"""The box in which a message is written that joins the runs while they go on.

Owns: the box, the switch that a live run is one that can be written to. Must not know: how runs are stepped, the player.
"""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from batchviz.jobs import JobView
from batchviz.ui import state
from batchviz.ui.words import WORDS

CHAT = "chat_on"  # bool: whether a live run is one that can be written to
MESSAGE = "message"  # str: what was written last
SENT = "message_sent"  # [str, float]: what was sent last, and when
ECHO_S = 1.5
NOT_SENT = "message_refused"  # str: why it was not taken


def show_switch() -> None:
    st.toggle("Chat with it", key=CHAT, help=WORDS["chat"])


def is_on() -> bool:
    return bool(st.session_state.get(CHAT))


def keep_switch() -> None:
    """Said where the switch is not drawn, or it would be forgotten."""
    st.session_state[CHAT] = is_on()


def begin() -> None:
    """A new run: what was said of messages to the last one is over."""
    st.session_state[NOT_SENT] = None


def last_word(view: JobView) -> str | None:
    """What to say once the run is over: that a message came too late, or None."""
    if st.session_state.get(NOT_SENT) or view.num_lost:
        return "your last message came too late: the runs were over"
    return None


def show_box(view: JobView) -> None:
    """The box, and under it what became of the last message."""
    box = st.container(key="chat_box")
    if view.may_add:
        limits = state.limits()
        longest = limits.max_message_characters
        words = f"Write to it while it runs: {limits.max_messages} messages, {longest} characters each"
        box.chat_input(words, key=MESSAGE, max_chars=longest, on_submit=_send)
    notice = st.session_state.get(NOT_SENT) or view.notice
    if notice:
        box.warning(state.plain(f"Your message was not taken: {notice}"), icon=":material/info:")
    elif view.num_added:
        box.caption(
            "Your message is in every queue at the same step: it joins where policy and memory let it, and waits where they "
            "do not."
        )


def _send() -> None:
    job_id, message = st.session_state.get(state.JOB), st.session_state.get(MESSAGE)
    last, now_s = st.session_state.get(SENT), time.monotonic()
    st.session_state[SENT] = [str(message), now_s]
    if is_echo(str(message), now_s, last):
        return
    st.session_state[NOT_SENT] = None
    try:
        state.shared_worker().add(int(job_id or 0), str(message or ""))
    except ValueError as error:
        st.session_state[NOT_SENT] = str(error)


def is_echo(message: str, now_s: float, last: list[Any] | None) -> bool:
    """Whether this is the message before, told once more by Streamlit: it does so where a run of the script that took it
    was interrupted by the next one. Nobody writes the same again within this time.
    """
    return last is not None and last[0] == message and now_s - float(last[1]) < ECHO_S
