"""The child process that owns the model: reads jobs from stdin, runs them step by step, says each step on stdout.

Owns: the loaded model, one run at a time. Must not know: pages, queues. Messages are JSON, one a line:
in  {"kind": "run", "job", "scenario", "configs"} and {"kind": "cancel", "job"}
out {"kind": "progress" | "headers" | "step" | "run_over" | "done" | "cancelled" | "failed", "job", ...}
Lines of a trace travel as text, as they stand in a trace file.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from typing import IO, Any

from batchviz.live import LiveModel
from batchviz.model.weights import WeightsError
from batchviz.prefill import PrefillMode
from batchviz.runs import Run, make_config
from batchviz.scenario import ScenarioError
from batchviz.scenario_file import parse_scenario
from batchviz.scheduler import Policy
from batchviz.trace import RunConfig, Trace, TraceStatus
from batchviz.trace_file import header_line, step_line


class Child:
    """Answers jobs until stdin closes. `cancelled` is filled by the reading thread and asked before every step."""

    def __init__(self, stdin: IO[str], stdout: IO[str]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._cancelled: set[int] = set()
        self._parent_is_gone = False
        self._model: LiveModel | None = None

    def serve(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        while (message := self._jobs.get()) is not None:
            self._run_job(message)

    def _read(self) -> None:
        for line in self._stdin:
            message = json.loads(line)
            if message["kind"] == "cancel":
                self._cancelled.add(message["job"])
            else:
                self._jobs.put(message)
        self._jobs.put(None)
        self._parent_is_gone = True

    def _is_cancelled(self, job: int) -> bool:
        return job in self._cancelled or self._parent_is_gone

    def _say(self, kind: str, job: int, **rest: Any) -> None:
        self._stdout.write(json.dumps({"kind": kind, "job": job, **rest}) + "\n")
        self._stdout.flush()

    def _run_job(self, message: dict[str, Any]) -> None:
        job: int = message["job"]
        try:
            scenario = parse_scenario(message["scenario"].encode(), "the scenario", is_json=False)
            configs = [_config(plain) for plain in message["configs"]]
            model = self._load(job)
            record = model.prepare(scenario, max(config.slot_capacity for config in configs))
            nothing_yet = [Trace(record, config, model.origin(), (), TraceStatus.UNFINISHED) for config in configs]
            self._say("headers", job, lines=[header_line(trace) for trace in nothing_yet])
            finished = all(self._run(job, i, model.start(record, config)) for i, config in enumerate(configs))
            self._say("done" if finished else "cancelled", job)
        except (ScenarioError, WeightsError, ValueError) as error:
            self._say("failed", job, message=str(error))

    def _load(self, job: int) -> LiveModel:
        if self._model is None:
            self._model = LiveModel.load(
                time.perf_counter,
                progress=lambda text, fraction: self._say("progress", job, message=text, fraction=fraction),
            )
        return self._model

    def _run(self, job: int, number: int, run: Run) -> bool:
        """One run, step by step. False if it was cancelled."""
        while run.has_work:
            if self._is_cancelled(job):
                self._say("run_over", job, run=number, status=TraceStatus.CANCELLED)
                return False
            self._say("step", job, run=number, line=step_line(run.step()))
        self._say("run_over", job, run=number, status=TraceStatus.COMPLETE)
        return True


def _config(plain: dict[str, Any]) -> RunConfig:
    return make_config(
        Policy(plain["policy"]),
        plain["num_slots"],
        plain["slot_capacity"],
        prefill=PrefillMode(plain["prefill"]),
        max_batched_tokens=plain["max_batched_tokens"],
        kv_budget_tokens=plain["kv_budget_tokens"],
        group_timeout=plain["group_timeout"],
    )


def main() -> None:
    """Entry of `python -m batchviz.worker_child`. Everything a library prints goes to stderr, not among the messages."""
    messages, sys.stdout = sys.stdout, sys.stderr
    Child(sys.stdin, messages).serve()


if __name__ == "__main__":
    main()
