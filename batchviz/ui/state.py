"""What a page remembers and shares: the worker, cached recordings and schedules, texts made safe.

Owns: session keys (primitives only), caches (JSON text and plain data only). Must not know: layout, charts, torch.
"""

from __future__ import annotations

import importlib.util
import re
import secrets
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import streamlit as st

from batchviz.limits import Limits, read_limits
from batchviz.playback import playback
from batchviz.recordings import load_recording
from batchviz.trace import Trace
from batchviz.trace_file import bundle_to_json, traces_from_json
from batchviz.worker import Worker

JOB = "job_id"  # int: the live job on show
VIEWER = "viewer"  # str: random, known to nobody else; tells this session apart in the queue
NO_MODEL = "Recorded runs only: this server has no model (torch is not installed)."
PLAYER = "player"  # the component's key
PAINTED = "painted"  # bool: the browser has drawn the player
LIVE_BUNDLE = "live_bundle"  # JSON text of the last finished live run
LIVE_RUN = "live_run"  # str: what the player knows it by
LIVE_FOR = "live_for"  # str: the source (see source.py) whose tokens it replaces


@st.cache_resource(show_spinner=False, on_release=lambda worker: worker.close())
def shared_worker() -> Worker:
    """The one worker of this server."""
    return Worker(time.monotonic, limits=limits())


@st.cache_resource(show_spinner=False)
def limits() -> Limits:
    """What one viewer may ask of this server; the server itself does not start with a file that cannot be read."""
    return read_limits()


def viewer() -> str:
    """The key of this session."""
    return str(st.session_state.setdefault(VIEWER, secrets.token_hex(8)))


def has_model() -> bool:
    """Whether the libraries are there that the model's process needs; they are looked for, not loaded."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers"))


@st.cache_data(max_entries=16, show_spinner=False)
def recording_text(preset: str) -> str:
    """A preset's recording as JSON text."""
    return bundle_to_json(load_recording(preset))


@lru_cache(maxsize=8)
def traces_in(bundle: str) -> tuple[Trace, ...]:
    """The traces of this JSON text, which nobody changes. To read them takes long, and a page asks several times a run."""
    return traces_from_json(bundle)


@st.cache_data(max_entries=64, show_spinner=False)
def payload_of(bundle: str, run_id: str | None = None) -> dict[str, Any]:
    """The player's payload of a bundle."""
    return playback(traces_in(bundle), run_id=run_id)


def is_painted() -> bool:
    """False until the browser has drawn the player of this session; who is no browser (a test) need not be waited for."""
    if not st.session_state.get(PAINTED) and (st.session_state.get(PLAYER) or {}).get("painted"):
        st.session_state[PAINTED] = True  # a browser that came back to a server that had forgotten it
    return bool(st.session_state.get(PAINTED)) or "User-Agent" not in st.context.headers


def live_run_id(job_id: int) -> str:
    """What the player knows a live run by: the same while it grows, is written to, and once it is over."""
    return f"live-{job_id}"


def kept_run_id(source_key: str) -> str | None:
    """The same for the live run that this source shows; None if it shows none."""
    is_live = st.session_state.get(LIVE_BUNDLE) is not None and st.session_state.get(LIVE_FOR) == source_key
    return str(st.session_state[LIVE_RUN]) if is_live else None


def keep_live_run(source_key: str, traces: Sequence[Trace], run_id: str) -> None:
    """A finished live run takes the place of what its source showed before."""
    st.session_state[LIVE_BUNDLE] = bundle_to_json(traces)
    st.session_state[LIVE_FOR] = source_key
    st.session_state[LIVE_RUN] = run_id


def plain(text: str) -> str:
    """Text from a model, a file or a person, as Markdown that shows exactly it: no links, images, colours or maths."""
    return re.sub(r"([\\`*_{}\[\]()<>#+\-.!|~$:&])", r"\\\1", text)
