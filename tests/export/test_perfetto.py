"""The Perfetto file against the format's rules, and against the trace that it was made from."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest

from batchviz.export.perfetto import KV_COUNTER, QUEUE_COUNTER, step_times, to_perfetto
from batchviz.kv_metrics import kv_steps
from batchviz.presets import PRESET_NAMES, SCRIPTED_PRESET_NAMES
from batchviz.recordings import load_recording
from batchviz.runs import scenario_config, scripted_run
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import SlotPhase, Trace
from tests.hostile import HOSTILE, hostile_traces
from tests.story import story

Entry = dict[str, Any]


def in_seconds() -> list[Trace]:
    """Nobody is there between the first requests and the last one."""
    requests = [
        ScenarioRequest(f"r{i}", 6, prompt_tokens=20, output_tokens=6, arrival=arrival)
        for i, arrival in enumerate((0.0, 0.001, 0.002, 7.5))
    ]
    scenario = Scenario("gap", "A gap", tuple(requests), num_slots=2, arrival_unit="seconds")
    policies = (Policy.SEQUENTIAL, Policy.CONTINUOUS)
    return [scripted_run(scenario, scenario_config(scenario, policy)).finish() for policy in policies]


CASES = {name: load_recording(name) for name in PRESET_NAMES + SCRIPTED_PRESET_NAMES} | {
    "aborts": tuple(story(aborts={6: "rome", 2: "greeting"})),
    "unfinished": tuple(story(max_steps=30)),
    "seconds": tuple(in_seconds()),
    "hostile": tuple(hostile_traces()),
}
all_cases = pytest.mark.parametrize("traces", CASES.values(), ids=CASES.keys())


def written(traces: tuple[Trace, ...]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_perfetto(traces))
    return found


def events(traces: tuple[Trace, ...], kind: str) -> list[Entry]:
    return [event for event in written(traces)["traceEvents"] if event["ph"] == kind]


@all_cases
def test_every_event_is_of_a_known_kind_and_has_what_its_kind_needs(traces: tuple[Trace, ...]) -> None:
    for event in written(traces)["traceEvents"]:
        assert event["ph"] in ("M", "X", "i", "C")
        assert event["name"]
        assert event["pid"] >= 1
        assert event["tid"] >= 0
        if event["ph"] != "M":
            assert type(event["ts"]) is int
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert type(event["dur"]) is int
            assert event["dur"] >= 0


@all_cases
def test_stretches_on_one_thread_never_overlap(traces: tuple[Trace, ...]) -> None:
    by_thread: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events(traces, "X"):
        by_thread[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert by_thread
    for stretches in by_thread.values():
        stretches.sort()
        for (_, end), (start, _) in pairwise(stretches):
            assert end <= start


@all_cases
def test_every_process_and_thread_has_exactly_one_name(traces: tuple[Trace, ...]) -> None:
    names = events(traces, "M")
    processes = [event["pid"] for event in names if event["name"] == "process_name"]
    threads = [(event["pid"], event["tid"]) for event in names if event["name"] == "thread_name"]
    assert sorted(processes) == list(range(1, len(traces) + 1))
    assert len(set(threads)) == len(threads)
    used = {(event["pid"], event["tid"]) for event in (*events(traces, "X"), *events(traces, "i"))}
    assert used <= set(threads)
    for pid, trace in enumerate(traces, start=1):
        slots = [e["args"]["name"] for e in names if e["pid"] == pid and e["name"] == "thread_name"]
        assert slots == [*(f"slot {slot}" for slot in range(trace.num_slots)), "requests"]


@all_cases
def test_durations_add_up_to_those_of_the_trace_by_slot_and_phase(traces: tuple[Trace, ...]) -> None:
    told: dict[tuple[int, int, str], int] = defaultdict(int)
    for event in events(traces, "X"):
        told[event["pid"], event["tid"], event["cat"]] += event["dur"]
    counted: dict[tuple[int, int, str], float] = defaultdict(float)
    for pid, trace in enumerate(traces, start=1):
        for snapshot in trace.steps:
            for tid, slot in enumerate(snapshot.slots, start=1):
                if slot.phase is not SlotPhase.EMPTY:
                    counted[pid, tid, str(slot.phase)] += snapshot.duration_s * 1e6
    assert told.keys() == counted.keys()
    for key, microseconds in counted.items():
        assert told[key] == pytest.approx(microseconds, abs=len(traces[key[0] - 1].steps))  # a step is rounded once


@all_cases
def test_counters_are_those_counted_from_the_trace(traces: tuple[Trace, ...]) -> None:
    counters = events(traces, "C")
    for pid, trace in enumerate(traces, start=1):
        starts = [start for start, _ in step_times(trace)]
        for name, series, values in (
            (QUEUE_COUNTER, "requests", [len(trace.waiting(step)) for step in range(len(trace.steps))]),
            (KV_COUNTER, "tokens", [step.used for step in kv_steps(trace)]),
        ):
            own = [event for event in counters if event["pid"] == pid and event["name"] == name]
            told = {event["ts"]: event["args"][series] for event in own if event["ts"] in set(starts)}
            assert told == dict(zip(starts, values, strict=True))
            assert own[-1]["args"] == {series: 0}
            assert own == sorted(own, key=lambda event: event["ts"])


@all_cases
def test_every_arrival_finish_and_delivery_is_an_instant_of_its_step(traces: tuple[Trace, ...]) -> None:
    for pid, trace in enumerate(traces, start=1):
        told = [(e["args"]["step"], e["cat"], e["args"]["request"]) for e in events(traces, "i") if e["pid"] == pid]
        assert told == [tuple(event) for event in trace.events() if event.kind != "admitted"]
        times = step_times(trace)
        for event in events(traces, "i"):
            if event["pid"] == pid and event["cat"] in ("finished", "delivered"):
                assert event["ts"] == times[event["args"]["step"]][1]


def test_arrivals_in_seconds_are_where_they_were_and_the_time_nobody_is_there_stays_empty() -> None:
    traces = CASES["seconds"]
    told = {e["args"]["request"]: e["ts"] for e in events(traces, "i") if e["cat"] == "arrived" and e["pid"] == 2}
    assert told == {"r0": 0, "r1": 1000, "r2": 2000, "r3": 7_500_000}
    assert not [e for e in events(traces, "X") if e["ts"] < 7_500_000 < e["ts"] + e["dur"]]
    before = [e for e in events(traces, "C") if e["pid"] == 2 and e["name"] == KV_COUNTER and e["ts"] < 7_500_000]
    assert before[-1]["args"] == {"tokens": 0}


def test_the_file_says_which_seconds_these_are() -> None:
    assert written(CASES["four-slots"])["otherData"]["clock"] == "seconds, measured"
    assert written(CASES["golden-lengths"])["otherData"]["clock"] == "seconds, modelled"
    mixed = written((CASES["four-slots"][0], story()[1]))
    assert mixed["otherData"]["clock"] == "seconds, measured / modelled"
    named = [event["args"]["name"] for event in mixed["traceEvents"] if event["name"] == "process_name"]
    assert named == ["1: static, 4 slots (seconds measured)", "2: continuous, 4 slots (seconds modelled)"]


def test_times_never_run_backwards_whatever_a_file_says() -> None:
    trace = story(lengths=(5, 9, 2), num_slots=2)[1]
    steps = tuple(step._replace(start_s=-1.0 if step.step % 2 else step.start_s) for step in trace.steps)
    times = [
        time for pair in step_times(trace.__class__(trace.scenario, trace.config, trace.origin, steps)) for time in pair
    ]
    assert times == sorted(times)


def test_texts_of_strangers_are_values_and_nothing_else() -> None:
    asked = {event["args"]["request"] for event in events(CASES["hostile"], "X")}
    assert asked == {f"{HOSTILE}{number}" for number in range(3)}
