"""The recorded runs that come with batchviz: one bundle a preset, in assets/traces/.

Owns: where they lie and how they are read, replayed and listed. Must not know: models, pages.
"""

from __future__ import annotations

from pathlib import Path

from batchviz.runs import as_recorded, replay_run
from batchviz.trace import RunConfig, Trace
from batchviz.trace_file import read_traces

ASSETS = Path(__file__).resolve().parent.parent / "assets"


def recording_path(preset: str) -> Path:
    """Where a preset's recording lies, or would lie."""
    return ASSETS / "traces" / f"{preset}.json.gz"


def has_recording(preset: str) -> bool:
    return recording_path(preset).is_file()


def load_recording(preset: str) -> tuple[Trace, ...]:
    """The measured runs of a preset, as recorded. Raises TraceError if there is none or it is broken."""
    return tuple(as_recorded(trace) for trace in read_traces(recording_path(preset)))


def rescheduled(recordings: tuple[Trace, ...], config: RunConfig) -> Trace:
    """The tokens under this configuration: the measured run itself where it was recorded so, else a replay of them."""
    for trace in recordings:
        if trace.config == config:
            return trace
    return replay_run(recordings, config).finish()
