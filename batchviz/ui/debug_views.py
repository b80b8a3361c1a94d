"""What the page *Debug* shows of a step, one view at a time: only the open one computes.

Owns: the views. Must not know: buttons, sessions' lives, layout. Text from prompts and models is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import streamlit as st

from batchviz import explain
from batchviz.batch_picture import attention_mask, padding
from batchviz.debug_source import source_of_phase
from batchviz.debugger import DebugSession
from batchviz.ui import state
from batchviz.ui.charts import frame
from batchviz.ui.mask_chart import MASK_COLUMNS, mask_spec
from batchviz.ui.theme import REQUEST_COLOURS


def _decisions(session: DebugSession) -> None:
    lines = [f"- {state.plain(line)}" for line in explain.decisions(session.trace, session.facts())]
    st.markdown("\n".join(lines))


def _batch(session: DebugSession) -> None:
    rows = explain.packed_rows(session.trace, session.facts().snapshot.step)
    if not rows:
        st.caption("This step fed no token.")
        return
    st.caption(
        f"{len(rows):,} rows go through every linear layer together. Attention is each sequence's own: "
        "a row looks only at the keys and values of its slot."
    )
    st.dataframe(
        [
            {
                "row": row.row,
                "slot": row.slot,
                "request": row.request_id,
                "phase": str(row.phase),
                "position": row.position,
                "token": "" if row.token_id is None else str(row.token_id),
                "text": row.text or "",
                "sampled after it": row.is_sampled,
            }
            for row in rows
        ],
        hide_index=True,
        key="debug_batch",
    )


def _attention(session: DebugSession) -> None:
    trace, facts = session.trace, session.facts()
    counted = padding(facts)
    if not counted.num_sequences:
        st.caption("This step fed no token.")
        return
    order = {request.id: place for place, request in enumerate(trace.scenario.requests)}
    rows = [
        one._asdict() | {"phase": str(one.phase), "colour": order[one.request_id] % len(REQUEST_COLOURS)}
        for one in attention_mask(trace, facts)
    ]
    st.caption(
        f"{counted.rows:,} rows, one for each token fed, share every linear layer. In attention a row looks only at the "
        f"{'keys of its own slot' if counted.num_sequences > 1 else 'keys of its slot'}: the coloured part of its line."
    )
    words = f"Attention mask: {counted.rows} rows over {counted.keys} keys of {counted.num_sequences} sequences."
    st.vega_lite_chart(frame(rows, MASK_COLUMNS), mask_spec(), key="debug_mask", height=320, alt=words)
    st.caption(
        f"Padded to one length the same batch would be {counted.padded_rows:,} rows instead of {counted.rows:,}, over "
        f"{counted.padded_keys:,} keys instead of {counted.keys:,}."
    )


def _kv(session: DebugSession) -> None:
    facts, trace = session.facts(), session.trace
    capacity = trace.config_at(facts.snapshot.step).slot_capacity
    needs = {one.id: one.num_reserved_tokens for one in trace.scenario.requests}
    rows = [
        {
            "slot": number,
            "request": slot.request_id or "",
            "used": facts.kv_used[number],
            "reserved, unused": needs.get(slot.request_id or "", 0) - facts.kv_used[number],
            "of the slot": facts.kv_used[number] / capacity,
        }
        for number, slot in enumerate(facts.snapshot.slots)
    ]
    st.caption(f"{sum(facts.kv_used):,} KV positions are used; a slot has {capacity:,}.")
    st.dataframe(
        rows,
        hide_index=True,
        key="debug_kv",
        column_config={"of the slot": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)},
    )


def _queue(session: DebugSession) -> None:
    facts = session.facts()
    if not facts.num_waiting:
        st.caption("Nobody waits.")
        return
    rows = [
        {
            "request": name,
            "steps waited": facts.waited(name),
            "why": explain.why_waits(session.trace, facts, name),
        }
        for name in facts.waiting_since
    ]
    st.dataframe(
        rows, hide_index=True, key="debug_queue", column_config={"why": st.column_config.TextColumn(width="large")}
    )


def _time(session: DebugSession) -> None:
    snapshot = session.facts().snapshot
    parts = {"schedule": snapshot.schedule_s, "forward": snapshot.forward_s, "sample": snapshot.sample_s}
    total = sum(parts.values()) or 1.0
    rows = [{"part": name, "ms": 1000 * seconds, "share": seconds / total} for name, seconds in parts.items()]
    st.caption(f"Seconds are {session.trace.origin.seconds}.")
    st.dataframe(
        rows,
        hide_index=True,
        key="debug_time",
        column_config={
            "ms": st.column_config.NumberColumn(format="%.2f"),
            "share": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1),
        },
    )


def _source(session: DebugSession) -> None:
    st.caption(f"The functions of this phase, {session.phase}, as they run.")
    st.code(source_of_phase(session.phase), language="python")


VIEWS: MappingProxyType[str, Callable[[DebugSession], None]] = MappingProxyType(
    {
        "Decisions": _decisions,
        "Queue": _queue,
        "Batch": _batch,
        "Attention": _attention,
        "KV cache": _kv,
        "Time": _time,
        "Source": _source,
    }
)
