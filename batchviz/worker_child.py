"""The child process that owns the model: reads jobs from stdin, runs them step by step, says each step on stdout.

Owns: the loaded model, one run at a time. Must not know: pages, queues. Messages are JSON, one a line:
in  {"kind": "run", "job", "scenario", "configs", "together"}, {"kind": "cancel", "job"} and, while runs go on together,
    {"kind": "add", "job", "prompt"}; at any time {"kind": "debug", "ask", ...} (see debug_child.py), which is answered
    between two steps by {"kind": "answer", "ask", ...}
out {"kind": "progress" | "headers" | "changed" | "step" | "notice" | "run_over" | "done" | "cancelled" | "failed", "job", ...}
Lines of a trace travel as text, as they stand in a trace file. `changed` brings the headers again, with what was added.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any

from batchviz.debug_child import DebugRuns
from batchviz.live import LiveModel
from batchviz.model.weights import Progress, WeightsError
from batchviz.own_policy import describe
from batchviz.runs import Run, RunFailedError
from batchviz.scenario import ScenarioError, ScenarioRequest, free_id
from batchviz.scenario_file import parse_scenario
from batchviz.together import Together
from batchviz.trace import Trace, TraceStatus
from batchviz.trace_file import config_from_plain, header_line, step_line

LEAVES_WITHIN_S = 0.5  # after its parent is gone
CHAT_TOKENS = 64  # the longest answer to what is written while a run goes on
CHAT_POSITIONS = 256  # KV positions for such a message and its answer


class Child:
    """Answers jobs until stdin closes. `cancelled` is filled by the reading thread and asked before every step."""

    def __init__(self, stdin: IO[str], stdout: IO[str], parent_gone: Callable[[], None] = lambda: None) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._parent_gone = parent_gone
        self._jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._additions: queue.Queue[dict[str, Any]] = queue.Queue()
        self._questions: queue.Queue[dict[str, Any]] = queue.Queue()
        self._debugging = DebugRuns(self._load)
        self._cancelled: set[int] = set()
        self._parent_is_gone = False
        self._model: LiveModel | None = None

    def serve(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        while (message := self._jobs.get()) is not None:
            if message["kind"] == "run":
                self._run_job(message)
            self._answer()

    def _read(self) -> None:
        for line in self._stdin:
            message = json.loads(line)
            if message["kind"] == "cancel":
                self._cancelled.add(message["job"])
            elif message["kind"] == "add":
                self._additions.put(message)
            else:
                if message["kind"] == "debug":
                    self._questions.put(message)
                self._jobs.put(message)  # a question, too: it wakes whoever waits for a job
        self._jobs.put(None)
        self._parent_is_gone = True
        self._parent_gone()

    def _is_cancelled(self, job: int) -> bool:
        return job in self._cancelled or self._parent_is_gone

    def _say(self, kind: str, job: int, **rest: Any) -> None:
        self._write({"kind": kind, "job": job, **rest})

    def _write(self, message: dict[str, Any]) -> None:
        try:
            self._stdout.write(json.dumps(message) + "\n")
            self._stdout.flush()
        except BrokenPipeError:  # nobody is there to be told
            self._parent_is_gone = True

    def _answer(self) -> None:
        """Answers what was asked about debugging sessions since the last step."""
        for question in _waiting_in(self._questions):
            self._write({"kind": "answer", "ask": question["ask"], **self._debugging.answer(question)})

    def _run_job(self, message: dict[str, Any]) -> None:
        job: int = message["job"]
        try:
            scenario = parse_scenario(message["scenario"].encode(), "the scenario", is_json=False)
            configs = [config_from_plain(plain) for plain in message["configs"]]
            model = self._load(
                lambda text, fraction: self._say("progress", job, message=text, fraction=fraction),
            )
            record = model.prepare(scenario, max(config.slot_capacity for config in configs))
            nothing_yet = [Trace(record, config, model.origin(), (), TraceStatus.UNFINISHED) for config in configs]
            self._say("headers", job, lines=[header_line(trace) for trace in nothing_yet])
            if message["together"]:
                model.check_memory(record, configs, CHAT_POSITIONS)
                runs = Together([model.start(record, config, room=CHAT_POSITIONS) for config in configs])
                finished = self._run_together(job, runs, model)
            else:
                for config in configs:  # before the first of them takes its time
                    model.check_memory(record, [config])
                finished = all(self._run(job, i, model.start(record, config)) for i, config in enumerate(configs))
            self._say("done" if finished else "cancelled", job)
        except (WeightsError, ValueError) as error:  # ScenarioError and RunFailedError among them
            self._say("failed", job, message=str(error))
        except Exception as error:  # noqa: BLE001 whatever a library raises; the next job may go better
            self._say("failed", job, message=f"the run could not be made: {describe(error)}")

    def _load(self, progress: Progress | None = None) -> LiveModel:
        if self._model is None:
            self._model = LiveModel.load(time.perf_counter, progress=progress)
        return self._model

    def _run(self, job: int, number: int, run: Run) -> bool:
        """One run, step by step. False if it was cancelled."""
        while run.has_work:
            self._answer()
            if self._is_cancelled(job):
                self._say("run_over", job, run=number, status=TraceStatus.CANCELLED)
                return False
            try:
                snapshot = run.step()
            except RunFailedError:
                self._say_failed(job, number, run)
                raise
            self._say("step", job, run=number, line=step_line(snapshot))
        self._say("run_over", job, run=number, status=TraceStatus.COMPLETE)
        return True

    def _say_failed(self, job: int, number: int, run: Run) -> None:
        """A run that ended with `error` says why in its header."""
        self._say("run_over", job, run=number, status=TraceStatus.ERROR, line=header_line(run.trace()))

    def _run_together(self, job: int, runs: Together, model: LiveModel) -> bool:
        """All runs in turn, step by step; what people write joins them between two steps. False if cancelled."""
        while True:
            for message in self._additions_for(job):
                self._add(job, runs, model, str(message["prompt"]))
            self._answer()
            is_cancelled = self._is_cancelled(job)
            if is_cancelled or not runs.has_work:
                break
            try:
                for number, snapshot in runs.step():
                    self._say("step", job, run=number, line=step_line(snapshot))
            except RunFailedError:
                for number, run in enumerate(runs.runs):
                    if run.trace().status is TraceStatus.ERROR:
                        self._say_failed(job, number, run)
                raise
        for number, run in enumerate(runs.runs):
            status = TraceStatus.CANCELLED if run.has_work else TraceStatus.COMPLETE
            self._say("run_over", job, run=number, status=status)
        return not is_cancelled

    def _additions_for(self, job: int) -> Iterator[dict[str, Any]]:
        """What was written for this job since the last step; what was meant for an earlier one is too late."""
        return (message for message in _waiting_in(self._additions) if message["job"] == job)

    def _add(self, job: int, runs: Together, model: LiveModel, prompt: str) -> None:
        """Lets it join every run at the step that comes next, or says why it cannot."""
        known = {request.id for request in runs.runs[0].trace().scenario.requests}
        request = ScenarioRequest(free_id("chat", known), CHAT_TOKENS, prompt=prompt, arrival=runs.next_step)
        try:
            traced = model.traced(request, model.loaded.max_positions)
            need = traced.num_prompt_tokens + CHAT_TOKENS
            if need > CHAT_POSITIONS:
                raise ScenarioError(
                    f"the message has {traced.num_prompt_tokens} tokens, with {CHAT_TOKENS} tokens of answer {need}; "
                    f"a message and its answer may have {CHAT_POSITIONS}; write less"
                )
            runs.add(traced, frozenset(model.loaded.stop_token_ids))
        except ValueError as error:
            self._say("notice", job, message=str(error))
            return
        self._say("changed", job, lines=[header_line(run.trace(TraceStatus.UNFINISHED)) for run in runs.runs])


def _waiting_in(messages: queue.Queue[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Takes out what is there now, and whatever comes meanwhile."""
    while True:
        try:
            yield messages.get_nowait()
        except queue.Empty:
            return


def main() -> None:
    """Entry of `python -m batchviz.worker_child`. Everything a library prints goes to stderr, not among the messages."""
    messages, sys.stdout = sys.stdout, sys.stderr
    Child(sys.stdin, messages, _leave).serve()
    with suppress(OSError):  # nobody may be there any more
        messages.flush()
    sys.stderr.flush()
    os._exit(0)  # taking torch and the weights down in good order takes a second or two, and saves nothing


def _leave() -> None:
    """Ends this process soon after its parent, even if it is loading, or in a step that takes long."""
    time.sleep(LEAVES_WITHIN_S)
    os._exit(0)


if __name__ == "__main__":
    main()
