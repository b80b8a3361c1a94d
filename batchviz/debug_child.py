"""Debugging sessions on the real model, as the process that owns the model keeps them: runs by number, asked step by step.

Owns: DebugRuns, and what each question means. Must not know: pages, history, who asks. A question is plain JSON, and so is
its answer; debug_remote.py is the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from batchviz.debug_model import ModelStart
from batchviz.debug_run import Seen, Started
from batchviz.live import LiveModel
from batchviz.model.weights import WeightsError
from batchviz.own_policy import describe
from batchviz.scenario import ScenarioRequest
from batchviz.scenario_file import parse_scenario
from batchviz.trace_file import config_from_plain, header_line, request_from_line, request_line, step_line

ROOM = 256  # KV positions of a slot, at least, for a request that comes later
GONE = "this session's engine is gone, since the model's process was started anew; begin another session"


class DebugRuns:
    """Answers questions about runs that are stepped by hand. `load` gives the model, loading it if need be."""

    def __init__(self, load: Callable[[], LiveModel]) -> None:
        self._load = load
        self._numbers = count(1)
        self._runs: dict[int, tuple[ModelStart, Started]] = {}
        self._answers: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "begin": self._begin,
            "step": self._step,
            "trace": self._trace_request,
            "add": self._add,
            "abort": self._abort,
            "reschedule": self._reschedule,
            "end": self._end,
        }

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer, or `{"refused": sentence}`."""
        try:
            return self._answers[question["what"]](question)
        except KeyError as error:
            return {"refused": str(error.args[0])}
        except (WeightsError, ValueError, MemoryError) as error:  # ScenarioError and DebugError among them
            return {"refused": str(error) or "there is not memory enough for another session"}
        except Exception as error:  # noqa: BLE001 whatever a library raises; everybody's sessions live on
            return {"refused": f"that could not be done: {describe(error)}"}

    def _begin(self, question: dict[str, Any]) -> dict[str, Any]:
        scenario = parse_scenario(question["scenario"].encode(), "the scenario", is_json=False)
        config = config_from_plain(question["config"])
        start = ModelStart(self._load(), scenario, config.slot_capacity, room=ROOM)
        number = next(self._numbers)
        self._runs[number] = start, start.again(config, question["most_slots"])
        return {"run": number, **self._standing(number)}

    def _step(self, question: dict[str, Any]) -> dict[str, Any]:
        _, started = self._of(question)
        snapshot = started.run.step()
        assert started.seen is not None
        seen = _plain(started.seen[snapshot.step])
        return {"line": step_line(snapshot), "has_work": started.run.has_work, "seen": seen}

    def _trace_request(self, question: dict[str, Any]) -> dict[str, Any]:
        start, _ = self._of(question)
        traced, stop_token_ids = start.request(ScenarioRequest(**question["request"]))
        return {"request": request_line(traced), "stop_token_ids": sorted(stop_token_ids)}

    def _add(self, question: dict[str, Any]) -> dict[str, Any]:
        _, started = self._of(question)
        started.run.add(request_from_line(question["request"]), frozenset(question["stop_token_ids"]))
        return self._standing(question["run"])

    def _abort(self, question: dict[str, Any]) -> dict[str, Any]:
        self._of(question)[1].run.abort(question["request_id"])
        return self._standing(question["run"])

    def _reschedule(self, question: dict[str, Any]) -> dict[str, Any]:
        self._of(question)[1].run.reschedule(config_from_plain(question["config"]))
        return self._standing(question["run"])

    def _end(self, question: dict[str, Any]) -> dict[str, Any]:
        self._runs.pop(question["run"], None)
        return {}

    def _standing(self, number: int) -> dict[str, Any]:
        run = self._runs[number][1].run
        return {"header": header_line(run.trace()), "has_work": run.has_work}

    def _of(self, question: dict[str, Any]) -> tuple[ModelStart, Started]:
        found = self._runs.get(question["run"])
        if found is None:
            raise ValueError(GONE)
        return found


def _plain(seen: Seen) -> dict[str, Any]:
    likeliest = [[slot, [list(one) for one in likely]] for slot, likely in seen.likeliest.items()]
    return {"likeliest": likeliest, "linear_s": seen.linear_s, "attention_s": seen.attention_s}
