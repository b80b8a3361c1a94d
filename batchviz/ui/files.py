"""Ways in and out: a scenario or trace file opened, what is on show as a link and as files.

Owns: the two popovers. Must not know: formats (they are written and read elsewhere), layout around it. A bad file gets
one calm sentence, and what was on show stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from batchviz.export.csv_files import requests_csv, steps_csv
from batchviz.link import MAX_OWN_CHARACTERS
from batchviz.scenario import ScenarioError
from batchviz.trace import Trace
from batchviz.trace_file import MAX_FILE_BYTES, MAX_UNPACKED_BYTES, TraceError, traces_from_json
from batchviz.ui import address, state
from batchviz.ui.source import OWN, OWN_TRACES, WORKLOAD_CUT, problems_of, scenario_text, take_file
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
    """The link to what is on show, and files of it. A fragment: the link says where the player rests."""
    with st.popover("Share", icon=":material/share:", width="stretch", key="share_box"):
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
        scenario = scenario_text(source)
        if scenario is not None:
            _download("Scenario (YAML)", scenario, f"{source.scenario.name}.yaml", "application/yaml", "scenario")
        if bundle is not None:
            name = source.scenario.name
            _download("Trace (JSON)", bundle, f"{name}.trace.json", "application/json", "trace")
            requests, steps = (partial(_as_csv, bundle, to_csv) for to_csv in (requests_csv, steps_csv))
            _download("Requests (CSV)", requests, f"{name}.requests.csv", "text/csv", "request")
            _download("Steps (CSV)", steps, f"{name}.steps.csv", "text/csv", "step")


def _as_csv(bundle: str, to_csv: Callable[[Sequence[Trace]], str]) -> bytes:
    """Made only when somebody wants it. With a mark that tells spreadsheets that it is UTF-8."""
    return to_csv(traces_from_json(bundle)).encode("utf-8-sig")


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
