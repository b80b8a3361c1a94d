"""One order for live runs: what was asked, how it stands, what came back so far.

Owns: Job, JobState, JobView, QueueFullError. Must not know: processes, queues, torch, streamlit.
A viewer is told apart by a key, "" being nobody in particular. A job may be several viewers': those who asked for the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from batchviz.trace import RunConfig, StepSnapshot, TraceStatus
from batchviz.trace_file import step_from_line


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
    """Too many jobs wait already, or are this viewer's. The message is one sentence."""


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
    viewer: str = ""  # whose turn it is
    turn: int = 0  # see job_queue.py
    looked_s: dict[str, float] = field(
        default_factory=dict
    )  # viewer -> when that one last looked; who left is not in it
    is_cancelled: bool = False  # and may still run, until the child has heard it
    place_at_first: int = 0
    num_asked_tokens: int = 0  # the most that its answers may have, over all its runs
    submitted_s: float = 0.0
    began_s: float = 0.0  # when its first run did, or when it ended without one
    marked_s: float = 0.0  # when its last whole run ended, or the first began
    headers: list[str] = field(default_factory=list)  # one line a run, see trace_file
    steps: list[list[StepSnapshot]] = field(default_factory=list)  # one list a run; each is read once, as it comes
    statuses: list[TraceStatus] = field(default_factory=list)  # unfinished until a run is over

    def hear(self, message: Mapping[str, Any], now_s: float) -> float | None:
        """Takes in what the child said of it (see worker_child.py); returns the seconds of a run that is now complete."""
        match message["kind"]:
            case "progress":
                self.message, self.fraction = str(message["message"]), message["fraction"]
            case "headers":
                self.state, self.message, self.fraction = JobState.RUNNING, "", None
                self.headers = message["lines"]
                self.steps = [[] for _ in self.headers]
                self.statuses = [TraceStatus.UNFINISHED for _ in self.headers]
                self.began_s = self.marked_s = now_s
            case "changed":
                self.headers = message["lines"]
                self.num_added += 1
            case "notice":
                self.notice = str(message["message"])
                self.num_refused += 1
            case "step":
                self.steps[message["run"]].append(step_from_line(message["line"]))
            case "run_over":
                return self._hear_end(message["run"], message, now_s)
        return None

    def _hear_end(self, run: int, message: Mapping[str, Any], now_s: float) -> float | None:
        self.statuses[run] = TraceStatus(message["status"])
        self.headers[run] = message.get("line", self.headers[run])
        if self.statuses[run] is not TraceStatus.COMPLETE:
            return None
        seconds, self.marked_s = now_s - self.marked_s, now_s
        return seconds


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
    wait_s: float | None = None  # expected until it begins; None: not known yet
    num_viewers: int = 1  # who look at it
