"""A lesson as a Streamlit component. Owns: its registration and the little that goes back and forth.

Must not know: lessons' texts, runs (it takes a payload), pages. The browser owns the card on show and the cursor; Python
hears only of a wish for another lesson.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from batchviz.lesson_assets import lesson_css, lesson_html, lesson_js

_LESSON = st.components.v2.component(
    "batchviz_lesson",
    html=f"<template>\n{lesson_html()}</template>\n",
    css=lesson_css(),
    js=lesson_js(),
    isolate_styles=True,
)


def show_lesson(
    payload: Mapping[str, Any], *, key: str, place: int, present: bool, on_wanted_change: Callable[[], None]
) -> Any:
    """Draws a lesson at a card, or the list of them; `result.wanted` is the id of the lesson that was asked for, "" the list."""
    return _LESSON(
        key=key,
        data={"lesson": payload, "place": place, "present": present},
        default={"wanted": None},
        width="stretch",
        height="content",
        on_wanted_change=on_wanted_change,
    )
