"""The table in which the requests may be changed before they are run live.

Owns: the table, what it says of the limits, and a scenario from its rows. Must not know: jobs, the player.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import streamlit as st

from batchviz.limits import Limits
from batchviz.scenario import MAX_ID_CHARACTERS, Scenario, ScenarioError, ScenarioRequest, is_printable
from batchviz.ui import state
from batchviz.ui.source import Source
from batchviz.ui.words import WORDS

Row = dict[str, Any]
ASKED = "asked"  # JSON text: [rows of the scenario, rows as they stood when the table was last put away]: Streamlit forgets it
IN_TABLE = "in_table"  # the same, as they stand in the table now
BOX = "box_prompts"


def show_prompts(source: Source) -> list[Row]:
    """Draws the table once somebody opens it; the rows as they stand in it, or would."""
    limits = state.limits()
    own = prompt_rows(source.scenario, limits)
    of, kept = json.loads(st.session_state.get(ASKED, "[null, null]"))
    rows: list[Row] = kept if of == own else own  # what was asked of another scenario is not asked of this one
    box = st.expander("Change the prompts", key=BOX, on_change=_put_away)
    if not box.open:
        return rows
    with box:
        edited = _show_table(source.scenario, rows, limits)
    st.session_state[IN_TABLE] = json.dumps([own, edited])
    return edited


def keep_rows(source: Source, rows: Sequence[Row]) -> None:
    """They are in the table when it is drawn next."""
    st.session_state[ASKED] = json.dumps([prompt_rows(source.scenario, state.limits()), rows])


def _put_away() -> None:
    """The table was opened or closed."""
    if not st.session_state[BOX] and IN_TABLE in st.session_state:
        st.session_state[ASKED] = st.session_state[IN_TABLE]


def _show_table(scenario: Scenario, rows: list[Row], limits: Limits) -> list[Row]:
    unit = "second" if scenario.arrival_unit == "seconds" else "step"
    st.caption(
        f"At most {limits.max_requests} requests, {limits.max_prompt_characters:,} characters each, and "
        f"{limits.max_tokens} tokens of answer. The {unit} at which a request arrives is counted from 0, and is at most "
        f"{limits.max_arrival}. {queue_words(limits)}"
    )
    edited = st.data_editor(
        rows,
        num_rows="dynamic",
        hide_index=True,
        key=f"prompts_{crc32(json.dumps(rows).encode())}",  # changes belong to the rows that they were made to
        column_order=["request", "prompt", "max tokens", "arrives"],
        column_config={
            "request": st.column_config.TextColumn(
                "request", max_chars=MAX_ID_CHARACTERS, width="small", help=WORDS["request"]
            ),
            "prompt": st.column_config.TextColumn("prompt", max_chars=limits.max_prompt_characters, width="large"),
            "max tokens": st.column_config.NumberColumn(min_value=1, max_value=limits.max_tokens, step=1),
            "arrives": st.column_config.NumberColumn(
                f"arrives at {unit}",
                min_value=0,
                max_value=limits.max_arrival,
                step=1 if unit == "step" else 0.01,
                help=WORDS["arrival"],
            ),
        },
    )
    return edited if isinstance(edited, list) else edited.to_dict("records")


def queue_words(limits: Limits) -> str:
    """How many live runs one may have, and everybody."""
    own = "one live run" if limits.max_runs_per_viewer == 1 else f"{limits.max_runs_per_viewer} live runs"
    return f"Each viewer has {own} at a time; at most {limits.max_queued} wait, and viewers take turns."


def prompt_rows(scenario: Scenario, limits: Limits) -> list[Row]:
    """The scenario as rows of the table."""
    return [
        {
            "request": request.id,
            "prompt": request.prompt or "",
            "max tokens": min(request.max_tokens, limits.max_tokens),
            "arrives": request.arrival,
        }
        for request in scenario.requests
    ]


def live_scenario(scenario: Scenario, rows: Sequence[Row], limits: Limits) -> Scenario:
    """The rows as a scenario; those without a prompt are passed over. Raises ScenarioError with a sentence."""
    requests: list[ScenarioRequest] = []
    for number, row in enumerate(rows, start=1):
        if _text(row.get("prompt")):
            requests.append(_request(scenario, row, f"row {number}", {request.id for request in requests}, limits))
    if not requests:
        raise ScenarioError("there is no prompt to run; write at least one")
    if len(requests) > limits.max_requests:
        raise ScenarioError(f"there are {len(requests)} prompts; a live run takes at most {limits.max_requests}")
    return replace(scenario, requests=tuple(requests))


def _request(scenario: Scenario, row: Row, place: str, taken: set[str], limits: Limits) -> ScenarioRequest:
    prompt, request_id = _text(row.get("prompt")), _text(row.get("request")) or place.replace(" ", "-")
    longest = limits.max_prompt_characters
    if len(prompt) > longest:
        raise ScenarioError(f"{place}: the prompt has {len(prompt):,} characters; at most {longest:,}")
    if len(request_id) > MAX_ID_CHARACTERS or not all(map(is_printable, request_id)):
        raise ScenarioError(f"{place}: a request is named by 1 to {MAX_ID_CHARACTERS} printable characters")
    if request_id in taken:
        raise ScenarioError(f"{place}: another request is named so already; give it a name of its own")
    max_tokens = _number(row.get("max tokens"), 1, limits.max_tokens, f"{place}: max tokens", whole=True)
    unit = "second" if scenario.arrival_unit == "seconds" else "step"
    arrival = _number(
        row.get("arrives") or 0, 0, limits.max_arrival, f"{place}: the {unit} of arrival", whole=unit == "step"
    )
    return ScenarioRequest(id=request_id, prompt=prompt, max_tokens=int(max_tokens), arrival=arrival)


def _text(value: Any) -> str:
    """An empty cell of an added row is None, or NaN once a table has been through pandas."""
    return value.strip() if isinstance(value, str) else ""


def _number(value: Any, low: int, high: int, what: str, *, whole: bool) -> float:
    is_number = isinstance(value, int | float) and math.isfinite(value) and low <= value <= high
    if not is_number or (whole and int(value) != value):
        raise ScenarioError(f"{what} must be a {'whole number' if whole else 'number'} from {low} to {high}")
    return int(value) if whole else float(value)
