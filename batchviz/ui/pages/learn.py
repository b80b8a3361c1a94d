"""The page *Learn*: the list of lessons, or one of them.

Owns: which lesson is on show, and its address. Must not know: what a lesson says or how it is drawn.
A link is `?lesson=kv-cache&stop=3`, where a stop is a card counted from 0, and `&present=1` for a room.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from batchviz.lesson import list_lessons
from batchviz.lesson_payload import index_payload, lesson_payload
from batchviz.ui import address
from batchviz.ui.lesson_view import show_lesson
from batchviz.ui.theme import WIDE_PADDING

KEY = "lesson_view"
MAX_CARD = 99
PRESENTING = (
    ".bv-presenting [data-testid='stHeader']{display:none}"
    ".bv-presenting .stMainBlockContainer{padding-top:1rem;max-width:none}"
)


def learn_page() -> None:
    """Draws the page."""
    st.html(f"<style>.stMainBlockContainer{{padding:{WIDE_PADDING}}}{PRESENTING}</style>")
    address.leave_view()
    ids = [lesson.id for lesson in list_lessons()]
    wanted = st.query_params.get("lesson", "")
    if wanted in ids:
        payload = _lesson(ids.index(wanted))
    else:
        st.markdown("### How a language model serves many people at once")
        st.caption(
            "Nine short lessons on real runs of a real model. Every number in them was computed from the run beside it. "
            "No knowledge is needed but that of having used a chat page."
        )
        if wanted:
            st.info("There is no lesson of that name; here are those that there are.")
        payload = _index()
    show_lesson(
        payload,
        key=KEY,
        place=_card(st.query_params.get("stop", "")),
        present=st.query_params.get("present") == "1",
        on_wanted_change=_go,
    )


def _go() -> None:
    """Another lesson was asked for in the browser."""
    wanted = (st.session_state.get(KEY) or {}).get("wanted")
    st.query_params.from_dict({"lesson": str(wanted)} if wanted else {})


def _card(text: str) -> int:
    return min(int(text), MAX_CARD) if text.isdecimal() and len(text) < 4 else 0


@st.cache_data(show_spinner=False)
def _lesson(place: int) -> dict[str, Any]:
    """The lessons never change while the page runs."""
    return lesson_payload(list_lessons(), place)


@st.cache_data(show_spinner=False)
def _index() -> dict[str, Any]:
    return index_payload(list_lessons())
