"""The page *What is real here*: what is measured, counted, recorded, modelled, simplified; how each figure is computed.

Owns: that prose. Must not know: how runs are made. What can be read from the runs on show is read from them.
"""

from __future__ import annotations

import streamlit as st

from batchviz.export.tables import METRIC_LINES, metric_rows, run_label
from batchviz.phrases import exactness
from batchviz.trace import Origin, RunnerKind, Seconds, Trace
from batchviz.ui import address, state
from batchviz.ui.source import bundle_of
from batchviz.ui.theme import page_style
from batchviz.ui.words import WORDS


def what_is_real_page() -> None:
    """Draws the page from the runs that the other page shows, or the first preset's."""
    st.html(page_style(more=".stMainBlockContainer{max-width:60rem}"))
    address.leave_view()
    source, panes = address.kept()
    bundle = bundle_of(source, panes)
    traces = state.traces_in(bundle) if bundle is not None else ()
    st.markdown("### What is real here")
    st.markdown(
        "Everything on the first page is read from a *trace*: what an engine did, step by step, written down while it "
        "did it. The engine is this project's own and small; the rules by which it seats requests are those of real "
        "servers. Nothing on the screen is drawn by hand."
    )
    for number, (heading, text) in enumerate(SECTIONS):
        st.markdown(f"**{heading}**  \n{text}")
        if number == 0 and traces:
            st.caption(state.plain(_shown(traces)))
    st.markdown("#### How each figure is computed")
    if traces:
        names = [run_label(pane, trace) for pane, trace in enumerate(traces)]
        st.caption(state.plain(f"The numbers are those of {source.scenario.title}, as it is on show."))
        st.dataframe(
            metric_rows(traces),
            hide_index=True,
            height="content",
            key="computed",
            column_order=["figure", "how it is computed", "unit", *names],
            column_config={name: st.column_config.NumberColumn(width="small", format="%.4g") for name in names},
        )
    else:
        st.dataframe([{"figure": line.label, "how it is computed": line.how} for line in METRIC_LINES], hide_index=True)
    st.markdown("#### The words")
    st.dataframe(
        [{"word": word, "what it means": sentence} for word, sentence in WORDS.items()],
        hide_index=True,
        height="content",
        key="words",
        column_config={"word": st.column_config.TextColumn(width="small")},
    )


SECTIONS = (
    (
        "Measured",
        ("Seconds marked *measured* come from a clock around the engine's steps, on the machine and with the library "
        "versions that the trace names: deciding, the forward pass, sampling. They differ from machine to machine."),
    ),
    (
        "Counted",
        ("Steps, slot-steps, tokens, places in the queue and waits in steps are counted from a run of the engine. They "
        "are the same every time and on every machine."),
    ),
    (
        "Recorded",
        ("The answers were sampled by the real model and written down. Since a request gets the same tokens whoever sits "
        "beside it, they can be shown under any policy, on any number of slots: the tokens stay, the schedule is run anew. "
        "Whether this exactness held on the machine of the recording is checked at its start and written into the trace."),
    ),
    (
        "Modelled",
        ("Where a schedule was not run on the model, its seconds are base + rows × cost, fitted to the measured steps of "
        "the recording. Such seconds are marked *modelled*, and are good for comparing, not for buying a machine. "
        "Presets marked *no model* have no words at all: only lengths, and modelled seconds."),
    ),
    (
        "The model",
        ("SmolLM2-135M-Instruct: 135 million parameters, so small that it is often wrong. Its weights are four-bit ones "
        "made dense again, not the original checkpoint: it computes with ordinary numbers, but what rounding to four bits "
        "took away is gone. It is not trained, tuned or scripted for what you see."),
    ),
    (
        "Simplified",
        ("One process, one model, one device. No paged KV cache: a slot reserves what its request may need at most. No "
        "prefix cache, no preemption, no speculative decoding. First come, first served. A held slot costs no arithmetic "
        "here; a server that pads its static batches computes for it too. In *mixed* prefill a long prompt takes one step "
        "like any other, though that step takes longer in seconds."),
    ),
)  # fmt: skip


def _shown(traces: tuple[Trace, ...]) -> str:
    """What the runs on show say about themselves."""
    said = [f"On show: {_seconds(run_label(pane, trace), trace.origin)}" for pane, trace in enumerate(traces)]
    origin = traces[0].origin
    model = origin.model
    if model is not None:
        held = exactness(model.exact, recorded=origin.runner is RunnerKind.RECORDED)
        said.append(
            f"Tokens by {model.name} ({model.dtype}, {model.device}) on {origin.machine}, {origin.date[:10]}; {held}."
        )
    if origin.versions:
        said.append("Versions: " + ", ".join(f"{name} {version}" for name, version in origin.versions.items()) + ".")
    return " ".join(said)


def _seconds(label: str, origin: Origin) -> str:
    if origin.seconds is Seconds.MEASURED:
        return f"{label}: seconds measured."
    if origin.cost is None:
        return f"{label}: seconds modelled."
    base, row = origin.cost
    fitted = "chosen" if origin.runner is RunnerKind.SCRIPTED else "fitted to the recorded steps"
    return f"{label}: seconds modelled as {1000 * base:.2f} ms a step + {1000 * row:.2f} ms a row, {fitted}."
