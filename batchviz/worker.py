"""Supervises ONE child process that owns the model and its engines.

Owns: Worker: a bounded queue of jobs, what came back so far, questions that are asked beside them. Must not know: torch, streamlit.
The web process never imports torch; a crash stays in the child. Messages are JSON, one a line (see worker_child.py).
"""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from batchviz.child_process import ChildProcess, Message
from batchviz.job_queue import JobQueue, Pace
from batchviz.jobs import Job, JobState, JobView, QueueFullError
from batchviz.limits import Limits
from batchviz.patience import LOOKS_EVERY_S, PATIENCE_S, Patience
from batchviz.run_log import log_ended
from batchviz.scenario import Scenario
from batchviz.scenario_file import dump_scenario
from batchviz.trace import RunConfig, Trace, TraceStatus
from batchviz.trace_file import joined_trace

ABANDONED_AFTER_S = 60.0  # a job that none of its viewers asked about for so long is cancelled: its page is gone
CHILD_COMMAND = (sys.executable, "-m", "batchviz.worker_child")


class Worker:
    """Runs jobs one at a time in a child process that it starts when needed and again when it dies or hangs.

    `clock` returns seconds and may only go forward. All methods may be called from any thread.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        command: Sequence[str] = CHILD_COMMAND,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._lock = threading.RLock()
        self._patience = Patience(clock)
        self._child = ChildProcess(command, self._lock, self._hear, self._child_ended, self._patience.hear)
        self._queue = JobQueue()
        self._pace = Pace()
        self._child_died = False  # the last one, by itself
        self._current: Job | None = None
        self._jobs: dict[int, Job] = {}
        self._next_id = 1

    def submit(
        self, scenario: Scenario, configs: Sequence[RunConfig], *, viewer: str = "", is_chat: bool = False
    ) -> int:
        """Queues a job and returns its id. Raises QueueFullError with one sentence.

        Whoever asks for what is queued or running for somebody else gets that job, and both are its viewers; "" is nobody
        in particular, who shares nothing. A chat is never shared: what one writes into it is not for the other. Its runs
        go on together instead of one after the other, and `add` lets a message join them. Raises ValueError for a chat
        whose arrivals are in seconds: they fall at different steps in each run.
        """
        if is_chat and scenario.arrival_unit == "seconds":
            raise ValueError("a chat needs arrivals in steps, and those of this scenario are in seconds")
        text, now_s = dump_scenario(scenario), self._clock()
        with self._lock:
            self._end_hung()
            self._drop_abandoned()
            shared = None if is_chat or not viewer else self._same_job(text, tuple(configs))
            if shared is None or viewer not in shared.looked_s:
                self._refuse_too_many(viewer, joins=shared is not None)
            if shared is not None:
                shared.looked_s[viewer] = now_s
                return shared.id
            job = Job(self._next_id, text, tuple(configs), is_chat, viewer=viewer, submitted_s=now_s)
            job.looked_s[viewer] = now_s
            job.num_asked_tokens = len(configs) * _most_tokens(scenario)
            self._next_id += 1
            self._jobs[job.id] = job
            self._queue.append(job)
            job.place_at_first = self._queue.place(job) if self._current is not None else 0
            self._start_next()
            return job.id

    def _same_job(self, text: str, configs: tuple[RunConfig, ...]) -> Job | None:
        live = [job for job in self._jobs.values() if not (job.state.is_over or job.is_cancelled or job.is_chat)]
        return next((job for job in live if job.viewer and (job.scenario_text, job.configs) == (text, configs)), None)

    def _refuse_too_many(self, viewer: str, *, joins: bool) -> None:
        own = sum(viewer in job.looked_s and not job.state.is_over for job in self._jobs.values())
        if viewer and own >= self._limits.max_runs_per_viewer:
            runs = "a live run" if own == 1 else f"{own} live runs"
            raise QueueFullError(f"you have {runs} already; wait until it is over, or cancel it")
        if not joins and len(self._queue) >= self._limits.max_queued:
            raise QueueFullError(f"{len(self._queue)} runs wait already; try again when some are through")

    def view(self, job_id: int, viewer: str = "") -> JobView | None:
        """How a job stands for this viewer, or None if nobody remembers it. Asking keeps the job alive.

        Whoever left a job that goes on for others sees it cancelled.
        """
        with self._lock:
            self._end_hung()
            job = self._jobs.get(job_id)
            if job is None:
                return None
            has_left = viewer not in job.looked_s
            now_s = self._clock()
            if not has_left:
                job.looked_s[viewer] = now_s
            self._drop_abandoned()
            place = self._queue.place(job)
            counts = tuple(len(steps) for steps in job.steps)
            version = job.num_added + sum(counts) + sum(s is not TraceStatus.UNFINISHED for s in job.statuses)
            may_add = job.is_chat and job.state is JobState.RUNNING and job.num_sent < self._limits.max_messages
            return JobView(
                id=job.id,
                state=JobState.CANCELLED if has_left else job.state,
                message="you left it" if has_left else job.message,
                fraction=job.fraction,
                place=place,
                num_steps=counts,
                version=version,
                is_chat=job.is_chat,
                may_add=may_add,
                num_added=job.num_added,
                num_lost=job.num_sent - job.num_added - job.num_refused,
                notice=job.notice,
                wait_s=self._pace.wait_s(self._queue.before(job), self._current, now_s) if place else None,
                num_viewers=len(job.looked_s),
            )

    def traces(self, job_id: int) -> tuple[Trace, ...]:
        """What each run of the job gave so far; a run in progress is `unfinished`."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                return ()
            steps_so_far = [tuple(steps) for steps in job.steps]
            parts = list(zip(job.headers, steps_so_far, job.statuses, strict=True))
        return tuple(joined_trace(header, steps, status) for header, steps, status in parts)

    def add(self, job_id: int, prompt: str) -> None:
        """Lets a message join a chat's runs before their next step. Raises ValueError with one sentence if it cannot."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or not job.is_chat or job.state is not JobState.RUNNING:
                raise ValueError("the run is over, so nothing can join it any more; run it live again")
            if job.num_sent >= self._limits.max_messages:
                raise ValueError(f"{job.num_sent} messages were sent to this run; it takes no more")
            if not prompt.strip() or len(prompt) > self._limits.max_message_characters:
                raise ValueError(f"a message has 1 to {self._limits.max_message_characters} characters")
            job.notice = ""
            job.num_sent += 1
            self._child.send({"kind": "add", "job": job.id, "prompt": prompt})

    def cancel(self, job_id: int, viewer: str = "") -> None:
        """Ends a job: one in the queue at once, a running one before its next step. What it gave so far stays.

        While others look at it, it goes on for them, and only this viewer leaves it.
        """
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.state.is_over:
                return
            if viewer in job.looked_s and len(job.looked_s) > 1:
                del job.looked_s[viewer]
                return
            job.is_cancelled = True
            if job in self._queue:
                self._queue.remove(job)
                self._end(job, JobState.CANCELLED, "cancelled before it began")
                return
            self._child.send({"kind": "cancel", "job": job.id})
            if job.state is JobState.LOADING:  # loading goes on for those behind it; the child skips this job
                job.message = "cancelled; the model is still loading"

    def ask(self, question: Message, patience_s: float = PATIENCE_S) -> Message:
        """Asks the child something beside its jobs, and waits. Raises ChildEndedError, TimeoutError."""
        with self._lock:
            self._end_hung()
            if self._current is None and not self._child.is_asked:
                self._patience.begin()
            answer = self._child.ask(question)
        gives_up_s = self._clock() + patience_s
        while True:
            try:
                return answer.result(min(LOOKS_EVERY_S, max(gives_up_s - self._clock(), 0.0)))
            except TimeoutError:
                with self._lock:
                    self._end_hung()
                if not answer.done() and self._clock() >= gives_up_s:
                    raise

    @property
    def problem(self) -> str | None:
        """What is wrong with the model's process, in one sentence; None if nothing is known to be."""
        return (
            "the model's process has died, and no run has started another yet"
            if self._child_died and self._child.pid is None
            else None
        )

    @property
    def child_pid(self) -> int | None:
        """The child's process id, or None while there is no child."""
        return self._child.pid

    def close(self) -> None:
        """Ends the child and everything that waits for it."""
        with self._lock:
            for job in [*self._queue, *([self._current] if self._current else [])]:
                self._end(job, JobState.CANCELLED, "the server is closing")
            self._queue.clear()
            self._current = None
        self._child.close()

    def _start_next(self) -> None:
        if self._current is not None or not self._queue:
            return
        self._current = job = self._queue.popleft()
        job.state = JobState.LOADING
        job.message = "getting the model ready"
        self._patience.begin()
        self._child.start()
        configs = [dataclasses.asdict(config) for config in job.configs]
        self._child.send(
            {"kind": "run", "job": job.id, "scenario": job.scenario_text, "configs": configs, "together": job.is_chat}
        )

    def _hear(self, message: Message) -> None:
        job = self._current
        if job is not None and message.get("job") == job.id:
            self._take(job, message)

    def _child_ended(self, code: int) -> None:
        self._child_gone(f"the model's process ended unexpectedly (exit code {code}); the next run starts a new one")

    def _child_gone(self, why: str) -> None:
        self._child_died = True
        self._patience.forget()
        if self._current is not None:
            self._end(self._current, JobState.FAILED, why)
            self._current = None
        self._start_next()

    def _end_hung(self) -> None:
        """Ends a child that owes us something and has said nothing for too long; those in the queue get another one."""
        job = self._current
        if job is None and not self._child.is_asked:
            return
        silent_s = self._patience.exhausted_s(is_loading=job is not None and job.state is not JobState.RUNNING)
        if silent_s is None:
            return
        why = f"the model's process said nothing for {silent_s:.0f} seconds and was ended"
        self._child.kill(why)
        self._child_gone(f"{why}; the next run starts a new one")

    def _take(self, job: Job, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind in ("done", "cancelled", "failed"):
            state = {"done": JobState.DONE, "cancelled": JobState.CANCELLED}.get(kind, JobState.FAILED)
            self._end(job, state, str(message.get("message", "")))
            self._current = None
            self._start_next()
            return
        whole_run_s = job.hear(message, self._clock())
        if whole_run_s is not None:
            self._pace.measured(whole_run_s, job.num_asked_tokens // len(job.configs))
        if kind == "step":
            self._drop_abandoned()

    def _end(self, job: Job, state: JobState, message: str) -> None:
        job.state, job.message, job.fraction = state, message, None
        log_ended(job, self._clock())

    def _drop_abandoned(self) -> None:
        """Cancels jobs that nobody looks at any more, and forgets old ones."""
        latest = self._clock() - ABANDONED_AFTER_S
        for job in list(self._jobs.values()):
            for viewer in [one for one, looked_s in job.looked_s.items() if looked_s < latest]:
                if not job.state.is_over:
                    self.cancel(job.id, viewer)
                elif len(job.looked_s) == 1:
                    del self._jobs[job.id]
                else:
                    del job.looked_s[viewer]


def _most_tokens(scenario: Scenario) -> int:
    return sum(request.output_tokens or request.max_tokens for request in scenario.requests)
