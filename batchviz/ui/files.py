"""Ways in and out: a scenario or trace file opened, what is on show as a link and as files.

Owns: the two popovers. Must not know: formats (they are written and read elsewhere), layout around it. A bad file gets
one calm sentence, and what was on show stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from batchviz.export.formats import FORMATS, Format
from batchviz.link import MAX_OWN_CHARACTERS
from batchviz.scenario import ScenarioError
from batchviz.trace_file import MAX_FILE_BYTES, MAX_UNPACKED_BYTES, TraceError
from batchviz.ui import address, state
from batchviz.ui.source import OWN, OWN_TRACES, WORKLOAD_CUT, Source, problems_of, scenario_text, take_file
from batchviz.ui.words import WORDS

FRAGMENT = "share"
REFUSED = "refused"  # str: why the last file was not taken


def show_open(disabled: bool) -> None:
    """A file from this computer."""
    with st.popover("Open a file", icon=":material/folder_open:", width="stretch", disabled=disabled, key="open"):
        st.file_uploader(
            "A scenario (YAML, JSON), a trace (JSON, plain or gzipped), or a server's workload (CSV, JSONL)",
            type=["yaml", "yml", "json", "gz", "csv", "jsonl"],
            key=address.UPLOAD,
            on_change=_take,
            help=f"At most {MAX_FILE_BYTES // 1_000_000} MB, {MAX_UNPACKED_BYTES // 1_000_000} MB unpacked. "
            f"Of a workload (Azure's CSV, Mooncake's JSONL) the first {WORKLOAD_CUT.limit} rows are taken, without those "
            f"of more than {WORKLOAD_CUT.max_total_tokens:,} tokens. It stays on this server as long as this page is open.",
        )


def _take() -> None:
    uploaded = st.session_state.get(address.UPLOAD)
    if uploaded is None:
        return
    try:
        if uploaded.size > MAX_FILE_BYTES:
            raise TraceError(f"the file has {uploaded.size:,} bytes; it may have at most {MAX_FILE_BYTES:,}")
        take_file(uploaded.getvalue(), uploaded.name)
    except (TraceError, ScenarioError) as error:
        st.session_state[REFUSED] = str(error)
        return
    st.session_state["preset"] = OWN
    address.take_source()


def show_notices() -> None:
    """What was refused, and what is wrong with a trace that is shown nevertheless."""
    refused = st.session_state.pop(REFUSED, None)
    if refused is not None:
        st.warning(f"This file was not opened: {state.plain(refused)}", icon=":material/info:")
    traces = st.session_state.get(OWN_TRACES)
    if traces is not None and st.session_state.get("preset") == OWN:
        for problem in problems_of(str(traces))[:1]:
            st.warning(f"This trace breaks the rules of scheduling: {state.plain(problem)}", icon=":material/rule:")


def show_share(bundle: str | None) -> None:
    """The link to what is on show, and files of it, once it is open. A fragment: the link says where the player rests."""
    box = st.popover("Share", icon=":material/share:", width="stretch", key="share_box", on_change="rerun")
    if not box.open:
        return
    with box:
        source = address.source_now()
        link = address.link_now()
        if link is not None:
            st.markdown("A link to this", help=WORDS["link"])
            st.code(link, language=None, wrap_lines=True)
            theme = address.theme_now()
            if theme is not None:
                st.toggle(f"The link opens in this theme ({theme})", key=address.KEEP_THEME)
        elif source.is_live:
            st.caption("A live run travels as a file: download its trace here, and open it there.")
        elif source.is_trace:
            st.caption("A trace of your own travels as a file: download it here, and open it there.")
        else:
            st.caption(f"This scenario takes more than {MAX_OWN_CHARACTERS:,} characters of a link: send it as a file.")
        _show_downloads(source, bundle)


def _show_downloads(source: Source, bundle: str | None) -> None:
    """In three groups, by what one wants a file for."""
    name, text = source.scenario.name, scenario_text(source)
    if bundle is not None:
        at = st.session_state.get(address.STEP)
        step = at if isinstance(at, int) else None
        _show_formats("To look at", ("page", "picture", "animation"), bundle, name, step)
        _show_formats("For a report or a spreadsheet", ("table", "request", "step"), bundle, name, step)
    if text is not None or bundle is not None:
        st.caption("To work on")
    with st.container(horizontal=True):
        if text is not None:
            _download("Scenario (YAML)", text, f"{name}.yaml", "application/yaml", "scenario")
        if bundle is not None:
            _download("Trace (JSON)", bundle, f"{name}.trace.json", "application/json", "trace")
            _show_format("perfetto", bundle, name, None)


def _show_formats(caption: str, keys: Sequence[str], bundle: str, name: str, step: int | None) -> None:
    st.caption(caption)
    with st.container(horizontal=True):
        for key in keys:
            _show_format(key, bundle, name, step)


def _show_format(key: str, bundle: str, name: str, step: int | None) -> None:
    chosen = next(known for known in FORMATS if known.key == key)
    _download(chosen.label, partial(_made, bundle, chosen, step), f"{name}{chosen.suffix}", chosen.mime, key)


def _made(bundle: str, chosen: Format, step: int | None) -> bytes:
    """Made only when somebody wants it."""
    return chosen.bytes_of(state.traces_in(bundle), step)


def _download(label: str, text: str | Callable[[], bytes], name: str, mime: str, word: str) -> None:
    st.download_button(
        label,
        text,
        name,
        mime,
        key=f"download_{word}",
        on_click="ignore",
        width="stretch",
        icon=":material/download:",
        help=WORDS[word],
    )
