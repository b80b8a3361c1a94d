"""What a page remembers and shares: the worker, cached recordings and schedules, texts made safe.

Owns: session keys (primitives only), caches (JSON text and plain data only). Must not know: layout, charts, torch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import streamlit as st

from batchviz.playback import playback
from batchviz.presets import PRESET_NAMES, load_scenario
from batchviz.recordings import load_recording, rescheduled
from batchviz.runs import DEFAULT_SLOT_CAPACITY
from batchviz.scenario import Scenario
from batchviz.scheduler import Policy
from batchviz.trace import Trace
from batchviz.trace_file import bundle_to_json, traces_from_json
from batchviz.worker import Worker

JOB = "job_id"  # int: the live job on show
LIVE_BUNDLE = "live_bundle"  # JSON text of the last finished live run; replaces the preset's recording
LIVE_FOR = "live_for"  # str: the preset whose place it took


@st.cache_resource(show_spinner=False, on_release=lambda worker: worker.close())
def shared_worker() -> Worker:
    """The one worker of this server."""
    return Worker(time.monotonic)


@st.cache_data(max_entries=16, show_spinner=False)
def recording_text(preset: str) -> str:
    """A preset's recording as JSON text."""
    return bundle_to_json(load_recording(preset))


@st.cache_data(max_entries=64, show_spinner=False)
def scheduled_text(source: str, panes: tuple[tuple[str, int], ...]) -> str:
    """The bundle `source` under the policy and slot count of each pane, as JSON text."""
    recordings = traces_from_json(source)
    traces = [rescheduled(recordings, Policy(policy), slots, DEFAULT_SLOT_CAPACITY) for policy, slots in panes]
    return bundle_to_json(traces)


@st.cache_data(max_entries=64, show_spinner=False)
def payload_of(bundle: str) -> dict[str, Any]:
    """The player's payload of a bundle."""
    return playback(traces_from_json(bundle))


@st.cache_data(max_entries=16, show_spinner=False)
def preset_titles() -> dict[str, str]:
    """Name -> title of every preset with words, in order."""
    return {name: load_scenario(name).title for name in PRESET_NAMES}


def preset(name: str) -> Scenario:
    return load_scenario(name)


def source_bundle(preset_name: str) -> str:
    """The tokens on show: the last live run, if it was made from this preset, else the preset's recording."""
    live = st.session_state.get(LIVE_BUNDLE)
    if live is not None and st.session_state.get(LIVE_FOR) == preset_name:
        return str(live)
    return recording_text(preset_name)


def keep_live_run(preset_name: str, traces: Sequence[Trace]) -> None:
    """A finished live run takes the recording's place."""
    st.session_state[LIVE_BUNDLE] = bundle_to_json(traces)
    st.session_state[LIVE_FOR] = preset_name


def plain(text: str) -> str:
    """Text from a model, a file or a person, as Markdown that shows exactly it: no links, images, colours or maths."""
    return re.sub(r"([\\`*_{}\[\]()<>#+\-.!|~$:&])", r"\\\1", text)
