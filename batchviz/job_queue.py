"""Who is next: live runs in turns by viewer, and how long each is likely to wait.

Owns: JobQueue, the order; Pace, what runs took so far. Must not know: processes, messages, locks, torch, streamlit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from batchviz.jobs import Job, JobState

REMEMBERED_RUNS = 16


class JobQueue:
    """Round robin by viewer: a viewer's second job waits until everybody's first had its turn.

    Each job has a turn: its viewer's last one plus one, but none that is over already. Jobs go by turn, then as they came.
    """

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._turn = 0  # that of the job which was taken last
        self._last_turns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs))

    def append(self, job: Job) -> None:
        viewer = job.viewer or f"#{job.id}"  # who is nobody in particular is nobody else either
        job.turn = max(self._turn, self._last_turns.get(viewer, self._turn - 1) + 1)
        self._last_turns[viewer] = job.turn
        self._jobs.append(job)
        self._jobs.sort(key=lambda one: (one.turn, one.id))

    def popleft(self) -> Job:
        job = self._jobs.pop(0)
        self._turn = job.turn
        self._last_turns = {viewer: turn for viewer, turn in self._last_turns.items() if turn >= self._turn}
        return job

    def remove(self, job: Job) -> None:
        self._jobs.remove(job)

    def clear(self) -> None:
        self._jobs.clear()

    def place(self, job: Job) -> int:
        """1 is next, 0 if it does not wait here."""
        return 1 + self._jobs.index(job) if job in self._jobs else 0

    def before(self, job: Job) -> list[Job]:
        """Those that go first."""
        return self._jobs[: self._jobs.index(job)]


class Pace:
    """Seconds per token asked for, over the last whole runs. Answers may end sooner than they may: what is measured
    against is what was asked, so that runs of one kind predict each other.
    """

    def __init__(self) -> None:
        self._runs: deque[tuple[float, int]] = deque(maxlen=REMEMBERED_RUNS)

    def measured(self, seconds: float, num_tokens: int) -> None:
        """A run that may have had `num_tokens` took `seconds`."""
        self._runs.append((seconds, num_tokens))

    def expected_s(self, num_tokens: int) -> float | None:
        """How long such a run is likely to take; None before anything was measured."""
        total = sum(tokens for _, tokens in self._runs)
        return None if total == 0 else num_tokens * sum(seconds for seconds, _ in self._runs) / total

    def wait_s(self, ahead: list[Job], current: Job | None, now_s: float) -> float | None:
        """How long those ahead are likely to take, and what is left of the one that runs; None before anything was
        measured. A run that takes longer than expected could end at any moment.
        """
        waiting = self.expected_s(sum(job.num_asked_tokens for job in ahead))
        if waiting is None or current is None:
            return waiting
        whole = self.expected_s(current.num_asked_tokens) or 0.0
        gone = now_s - current.began_s if current.state is JobState.RUNNING else 0.0
        return waiting + max(0.0, whole - gone)
