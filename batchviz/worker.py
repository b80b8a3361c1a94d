"""Supervises ONE child process that owns the model and its engines.

Owns: Worker: a bounded queue of jobs, what came back so far, questions that are asked beside them. Must not know: torch, streamlit.
The web process never imports torch; a crash stays in the child. Messages are JSON, one a line (see worker_child.py).
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from batchviz.child_process import ChildProcess, Message
from batchviz.jobs import Job, JobState, JobView, QueueFullError
from batchviz.scenario import Scenario
from batchviz.scenario_file import dump_scenario
from batchviz.trace import RunConfig, Trace, TraceStatus
from batchviz.trace_file import joined_trace

MAX_QUEUED_JOBS = 16
MAX_ADDITIONS = 8  # messages that may join one chat
MAX_ADDED_CHARACTERS = 400
ABANDONED_AFTER_S = 60.0  # a job that nobody asked about for so long is cancelled: its page is gone
PATIENCE_S = 600.0  # with a question, and with a model that loads: it may have to be fetched first
HANGS_AFTER_S = 120.0  # a child that owes us something and says nothing for so long is ended
HANGS_AFTER_TOKEN_S = 0.02  # and for so much longer for every token of the prompts: one step may read them all
LOOKS_EVERY_S = 1.0  # whoever waits for an answer looks so often whether the child hangs
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
    ) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._child = ChildProcess(command, self._lock, self._hear, self._child_ended, self._note)
        self._heard_s = clock()  # when the child last said anything, or was given something to do while it had nothing
        self._is_loaded = False  # whether this child is known to have its model
        self._most_prompt_tokens = 0  # of one run that this child was given
        self._queue: deque[Job] = deque()
        self._current: Job | None = None
        self._jobs: dict[int, Job] = {}
        self._next_id = 1

    def submit(self, scenario: Scenario, configs: Sequence[RunConfig], *, is_chat: bool = False) -> int:
        """Queues a job and returns its id. Raises QueueFullError with one sentence.

        A chat's runs go on together instead of one after the other, and `add` lets a message join them. Raises ValueError
        for a chat whose arrivals are in seconds: they fall at different steps in each run.
        """
        if is_chat and scenario.arrival_unit == "seconds":
            raise ValueError("a chat needs arrivals in steps, and those of this scenario are in seconds")
        with self._lock:
            self._end_hung()
            self._drop_abandoned()
            if len(self._queue) >= MAX_QUEUED_JOBS:
                raise QueueFullError(f"{len(self._queue)} runs wait already; try again when some are through")
            job = Job(self._next_id, dump_scenario(scenario), tuple(configs), is_chat, asked_at_s=self._clock())
            self._next_id += 1
            self._jobs[job.id] = job
            self._queue.append(job)
            self._start_next()
            return job.id

    def view(self, job_id: int) -> JobView | None:
        """How a job stands, or None if nobody remembers it. Asking keeps the job alive."""
        with self._lock:
            self._end_hung()
            job = self._jobs.get(job_id)
            if job is None:
                return None
            job.asked_at_s = self._clock()
            self._drop_abandoned()
            place = 0 if job is self._current or job.state.is_over else 1 + list(self._queue).index(job)
            counts = tuple(len(steps) for steps in job.steps)
            version = job.num_added + sum(counts) + sum(s is not TraceStatus.UNFINISHED for s in job.statuses)
            may_add = job.is_chat and job.state is JobState.RUNNING and job.num_sent < MAX_ADDITIONS
            return JobView(
                id=job.id,
                state=job.state,
                message=job.message,
                fraction=job.fraction,
                place=place,
                num_steps=counts,
                version=version,
                is_chat=job.is_chat,
                may_add=may_add,
                num_added=job.num_added,
                num_lost=job.num_sent - job.num_added - job.num_refused,
                notice=job.notice,
            )

    def traces(self, job_id: int) -> tuple[Trace, ...]:
        """What each run of the job gave so far; a run in progress is `unfinished`."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                return ()
            steps_so_far = [list(lines) for lines in job.steps]
            parts = list(zip(job.headers, steps_so_far, job.statuses, strict=True))
        return tuple(joined_trace(header, steps, status) for header, steps, status in parts)

    def add(self, job_id: int, prompt: str) -> None:
        """Lets a message join a chat's runs before their next step. Raises ValueError with one sentence if it cannot."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or not job.is_chat or job.state is not JobState.RUNNING:
                raise ValueError("the run is over, so nothing can join it any more; run it live again")
            if job.num_sent >= MAX_ADDITIONS:
                raise ValueError(f"{MAX_ADDITIONS} messages were sent to this run; it takes no more")
            if not prompt.strip() or len(prompt) > MAX_ADDED_CHARACTERS:
                raise ValueError(f"a message has 1 to {MAX_ADDED_CHARACTERS} characters")
            job.notice = ""
            job.num_sent += 1
            self._child.send({"kind": "add", "job": job.id, "prompt": prompt})

    def cancel(self, job_id: int) -> None:
        """Ends a job: one in the queue at once, a running one before its next step. What it gave so far stays."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.state.is_over:
                return
            if job in self._queue:
                self._queue.remove(job)
                self._end(job, JobState.CANCELLED, "cancelled before it began")
            elif job.state is JobState.LOADING:  # loading goes on for those behind it; the child skips this job
                self._child.send({"kind": "cancel", "job": job.id})
                job.message = "cancelled; the model is still loading"
            else:
                self._child.send({"kind": "cancel", "job": job.id})

    def ask(self, question: Message, patience_s: float = PATIENCE_S) -> Message:
        """Asks the child something beside its jobs, and waits. Raises ChildEndedError, TimeoutError."""
        with self._lock:
            self._end_hung()
            if self._current is None and not self._child.is_asked:
                self._heard_s = self._clock()
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
        self._heard_s = self._clock()
        self._child.start()
        configs = [dataclasses.asdict(config) for config in job.configs]
        self._child.send(
            {"kind": "run", "job": job.id, "scenario": job.scenario_text, "configs": configs, "together": job.is_chat}
        )

    def _hear(self, message: Message) -> None:
        job = self._current
        if job is not None and message.get("job") == job.id:
            self._take(job, message)

    def _note(self, message: Message) -> None:
        self._heard_s = self._clock()
        headers = message["lines"][:1] if message["kind"] == "headers" else [message.get("header", "{}")]
        self._most_prompt_tokens = max([self._most_prompt_tokens, *map(_num_prompt_tokens, headers)])
        if message["kind"] in ("headers", "step") or (message["kind"] == "answer" and "refused" not in message):
            self._is_loaded = True

    def _child_ended(self, code: int) -> None:
        self._child_gone(f"the model's process ended unexpectedly (exit code {code}); the next run starts a new one")

    def _child_gone(self, why: str) -> None:
        self._is_loaded, self._most_prompt_tokens = False, 0
        if self._current is not None:
            self._end(self._current, JobState.FAILED, why)
            self._current = None
        self._start_next()

    def _end_hung(self) -> None:
        """Ends a child that owes us something and has said nothing for too long; those in the queue get another one."""
        silent_s = self._clock() - self._heard_s
        if (self._current is None and not self._child.is_asked) or silent_s <= self._hangs_after_s():
            return
        why = f"the model's process said nothing for {silent_s:.0f} seconds and was ended"
        self._child.kill(why)
        self._child_gone(f"{why}; the next run starts a new one")

    def _hangs_after_s(self) -> float:
        job = self._current
        if not self._is_loaded or (job is not None and job.state is not JobState.RUNNING):
            return PATIENCE_S
        return HANGS_AFTER_S + HANGS_AFTER_TOKEN_S * self._most_prompt_tokens

    def _take(self, job: Job, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "progress":
            job.message, job.fraction = str(message["message"]), message["fraction"]
        elif kind == "headers":
            job.state, job.message, job.fraction = JobState.RUNNING, "", None
            job.headers = message["lines"]
            job.steps = [[] for _ in job.headers]
            job.statuses = [TraceStatus.UNFINISHED for _ in job.headers]
        elif kind == "changed":
            job.headers = message["lines"]
            job.num_added += 1
        elif kind == "notice":
            job.notice = str(message["message"])
            job.num_refused += 1
        elif kind == "step":
            job.steps[message["run"]].append(message["line"])
            self._drop_abandoned()
        elif kind == "run_over":
            job.statuses[message["run"]] = TraceStatus(message["status"])
            job.headers[message["run"]] = message.get("line", job.headers[message["run"]])
        else:
            state = {"done": JobState.DONE, "cancelled": JobState.CANCELLED}.get(kind, JobState.FAILED)
            self._end(job, state, str(message.get("message", "")))
            self._current = None
            self._start_next()

    def _end(self, job: Job, state: JobState, message: str) -> None:
        job.state, job.message, job.fraction = state, message, None

    def _drop_abandoned(self) -> None:
        """Cancels jobs that nobody looks at any more, and forgets old ones."""
        latest = self._clock() - ABANDONED_AFTER_S
        for job in list(self._jobs.values()):
            if job.asked_at_s < latest:
                if job.state.is_over:
                    del self._jobs[job.id]
                else:
                    self.cancel(job.id)


def _num_prompt_tokens(header: str) -> int:
    requests = json.loads(header).get("scenario", {}).get("requests", [])
    return sum(int(request["num_prompt_tokens"]) for request in requests)
