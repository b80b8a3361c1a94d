"""The player as a Streamlit component. Owns: its registration and the little that goes back and forth.

Must not know: traces (it takes a payload), pages. The browser owns the cursor: Python hears of it when it has come to
rest (pause, step, the end of a seek), and moves it only by a `seek` whose number `n` has grown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from batchviz.player_assets import player_css, player_html, player_js

# Registered once, when the module is imported: a component registered anew is another element, and loses its place.
_PLAYER = st.components.v2.component(
    "batchviz_player",
    html=f"<template>\n{player_html()}</template>\n",
    css=player_css(),
    js=player_js(),
    isolate_styles=True,
)


def show_player(
    payload: Mapping[str, Any],
    *,
    key: str,
    seek: Mapping[str, Any] | None = None,
    controls: bool = True,
    on_step_change: Callable[[], None] | None = None,
    on_speed_change: Callable[[], None] | None = None,
    on_painted_change: Callable[[], None] | None = None,
) -> Any:
    """Draws the player; `result.step` is where the cursor last came to rest, `result.speed` what a person chose (or None).

    `on_painted_change` is called once for every player that a browser has drawn.

    `seek` is {"n": 1, "step": 48, "speed": 2, "play": False}: obeyed once for every growing `n`, and then paused unless
    it says `play`; without a step the cursor stays, without a speed the speed. To move it again, send a higher `n`.
    """
    return _PLAYER(
        key=key,
        data={"payload": payload, "seek": seek, "controls": controls},
        default={"step": None, "speed": None, "painted": False},
        width="stretch",
        height="content",
        on_step_change=on_step_change or _nothing,
        on_speed_change=on_speed_change or _nothing,
        on_painted_change=on_painted_change or _nothing,
    )


def _nothing() -> None:
    """A component's state needs a callback to have a default."""
