"""One order for live runs: what was asked, how it stands, what came back so far.

Owns: Job, JobState, JobView, QueueFullError. Must not know: processes, queues, torch, streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from batchviz.trace import RunConfig, TraceStatus


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    LOADING = "loading"  # the child finds, fetches, converts or loads the model
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (JobState.DONE, JobState.CANCELLED, JobState.FAILED)


class QueueFullError(RuntimeError):
    """Too many jobs wait already."""


@dataclass(eq=False)
class Job:
    """One request for live runs: a scenario under several configurations, one after the other, or together."""

    id: int
    scenario_text: str
    configs: tuple[RunConfig, ...]
    is_chat: bool = False  # its runs go on together, and people may add to them
    num_sent: int = 0  # messages that were to join them
    num_added: int = 0  # those that did
    num_refused: int = 0
    notice: str = ""  # why the last addition was not taken
    state: JobState = JobState.QUEUED
    message: str = ""
    fraction: float | None = None  # of a download or conversion, 0 to 1
    asked_at_s: float = 0.0  # when somebody last looked
    headers: list[str] = field(default_factory=list)  # one line a run, see trace_file
    steps: list[list[str]] = field(default_factory=list)  # one list of lines a run
    statuses: list[TraceStatus] = field(default_factory=list)  # unfinished until a run is over


@dataclass(frozen=True)
class JobView:
    """What a page may know of a job: a copy, so that it cannot change while it is being drawn."""

    id: int
    state: JobState
    message: str
    fraction: float | None
    place: int  # in the queue: 0 is running or over, 1 is next
    num_steps: tuple[int, ...]  # so far, one a run; empty until the model is ready
    version: int  # grows with every step and addition: equal versions show equal traces
    is_chat: bool
    may_add: bool  # True while something can be written into its runs
    num_added: int  # messages that have joined its runs
    num_lost: int  # messages on their way, or, once it is over, too late
    notice: str
