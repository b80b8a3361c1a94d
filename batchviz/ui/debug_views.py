"""What the page *Debug* shows of a step, one view at a time: only the open one computes.

Owns: the views. Must not know: buttons, sessions' lives, layout. Text from prompts and models is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import streamlit as st

from batchviz import explain
from batchviz.batch_picture import attention_mask, blocks, padding
from batchviz.debug_source import source_of_phase
from batchviz.debugger import DebugSession
from batchviz.ui import state
from batchviz.ui.batch_charts import (
    ATTENTION_COLUMNS,
    LINEAR_COLUMNS,
    MASK_COLUMNS,
    attention_rows,
    attention_spec,
    linear_rows,
    linear_spec,
    mask_rows,
    mask_spec,
)
from batchviz.ui.charts import table_of


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
    working, counted = blocks(facts), padding(facts)
    if not working:
        st.caption("This step fed no token.")
        return
    pads = counted.padded_rows - counted.rows
    st.caption(
        f"**Linear layers: one block.** All {counted.rows:,} rows go through every one together. Padded to one length they "
        f"would be {counted.padded_rows:,}, {pads:,} of them for nothing."
    )
    linear = table_of(linear_rows(trace, working), LINEAR_COLUMNS)
    words = f"Linear layers: {counted.rows} rows packed, {counted.padded_rows} padded."
    st.vega_lite_chart(linear, linear_spec(), key="debug_linear", height=150, alt=words)
    st.caption(
        f"**Attention: one block per sequence.** Each looks only at the keys of its own slot, {counted.keys:,} in all; "
        f"padded it would be {counted.padded_keys:,}."
    )
    own = table_of(attention_rows(trace, working), ATTENTION_COLUMNS)
    words = f"Attention: {len(working)} blocks over {counted.keys} keys."
    st.vega_lite_chart(own, attention_spec(), key="debug_blocks", height=70 + 28 * len(working), alt=words)
    st.caption("**The same as a mask.** A row looks at the coloured part of its line.")
    rows = table_of(mask_rows(trace, attention_mask(trace, facts)), MASK_COLUMNS)
    words = f"Attention mask: {counted.rows} rows over {counted.keys} keys of {counted.num_sequences} sequences."
    st.vega_lite_chart(rows, mask_spec(), key="debug_mask", height=260, alt=words)


def _sampling(session: DebugSession) -> None:
    seen, trace, facts = session.seen(), session.trace, session.facts()
    if seen is None:
        st.caption(
            "Recorded tokens come without the probabilities of the others. Choose *the live model* above to see the ten "
            "likeliest next tokens of every slot."
        )
        return
    if not seen.likeliest:
        st.caption("This step sampled no token.")
        return
    sampling = {request.id: request.sampling for request in trace.scenario.requests}
    for number, candidates in sorted(seen.likeliest.items()):
        slot = facts.snapshot.slots[number]
        name = slot.request_id or ""
        how = sampling[name]
        said = "the likeliest is taken" if how.temperature <= 0 else f"temperature {how.temperature:g}, seed {how.seed}"
        st.caption(f"Slot {number}, **{state.plain(name)}**: {said}")
        st.dataframe(
            [
                {
                    "token": candidate.text,
                    "probability": candidate.probability,
                    "chosen": candidate.token_id == slot.token_id,
                    "id": str(candidate.token_id),
                }
                for candidate in candidates
            ],
            hide_index=True,
            key=f"debug_top_{number}",
            height=213,
            column_config={
                "probability": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1),
            },
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
    parts = {"schedule": snapshot.schedule_s, **_forward(session), "sample": snapshot.sample_s}
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


def _forward(session: DebugSession) -> dict[str, float]:
    """The forward pass, in its parts where they were told apart."""
    forward_s, seen = session.facts().snapshot.forward_s, session.seen()
    if seen is None or seen.linear_s is None or seen.attention_s is None:
        return {"forward": forward_s}
    rest_s = forward_s - seen.linear_s - seen.attention_s
    return {"forward: linear": seen.linear_s, "forward: attention": seen.attention_s, "forward: rest": rest_s}


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
        "Sampling": _sampling,
        "Time": _time,
        "Source": _source,
    }
)
