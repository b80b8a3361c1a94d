"""The player's payload says what the trace says, and grows with tokens, not with slots × steps."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from batchviz.playback import PHASES, playback
from batchviz.prefill import PrefillMode
from batchviz.scheduler import Policy
from batchviz.timeline import letter, pane_labels
from batchviz.trace import RunnerKind, SlotPhase, Trace
from tests.story import make_trace, story

NAMES = {number: phase for phase, number in PHASES.items()}


def slots_from(pane: dict[str, Any], ids: list[str]) -> list[list[tuple[SlotPhase, str | None]]]:
    """The trace's slots × steps, rebuilt from the spans."""
    grid: list[list[tuple[SlotPhase, str | None]]] = [
        [(SlotPhase.EMPTY, None)] * pane["num_slots"] for _ in range(pane["num_steps"])
    ]
    spans = pane["spans"]
    for slot, request, phase, first, last in zip(*(spans[key] for key in spans), strict=True):
        for step in range(first, last + 1):
            assert grid[step][slot] == (SlotPhase.EMPTY, None), "two spans lie on one slot-step"
            grid[step][slot] = (NAMES[phase], ids[request])
    return grid


@pytest.mark.parametrize("runner", [RunnerKind.RECORDED, RunnerKind.SCRIPTED])
@pytest.mark.parametrize("policy", list(Policy))
def test_spans_and_tokens_are_the_traces_own(policy: Policy, runner: RunnerKind) -> None:
    trace = make_trace(policy, 3, arrivals=[0, 0, 4, 4, 4, 9, 30, 31], runner=runner, aborts={5: "banana", 12: "rome"})
    payload = playback([trace])
    pane = payload["panes"][0]
    ids = payload["requests"]["id"]
    assert slots_from(pane, ids) == [[(slot.phase, slot.request_id) for slot in step.slots] for step in trace.steps]
    for index, request_id in enumerate(ids):
        tokens = pane["tokens"][index]
        runs = tokens["runs"]
        steps = [start + i for start, count in zip(runs[::2], runs[1::2], strict=True) for i in range(count)]
        expected = list(trace.tokens(request_id))
        assert steps == [step for step, _ in expected]
        if runner is RunnerKind.SCRIPTED or not expected:
            assert tokens["pieces"] is None
        else:
            assert tokens["pieces"] == [slot.text for _, slot in expected]


def test_rows_and_queue_are_the_traces_own() -> None:
    trace = make_trace(Policy.STATIC, 2, arrivals=[0, 0, 0, 5, 5, 5, 5, 700])
    payload = playback([trace])
    pane, ids = payload["panes"][0], payload["requests"]["id"]
    rows = pane["rows"]
    for step in range(0, len(trace.steps), 7):
        waiting = [
            ids[request]
            for request in pane["arrival_order"]
            if rows["arrived"][request] <= step
            and (rows["admitted"][request] is None or rows["admitted"][request] > step)
        ]
        assert waiting == [request_id for request_id, _ in trace.waiting(step)]
    for event in trace.events():
        if event.kind in rows:
            assert rows[event.kind][ids.index(event.request_id)] == event.step


def test_the_same_request_has_the_same_letter_and_colour_in_every_pane() -> None:
    payload = playback(story())
    assert payload["requests"]["letter"][:3] == ["A", "B", "C"]
    first = [pane["spans"]["request"][0] for pane in payload["panes"]]
    assert first == [0, 0]
    assert len({len(pane["tokens"]) for pane in payload["panes"]}) == 1


def test_letters_go_on_after_z() -> None:
    letters = [letter(index) for index in range(2000)]
    assert len(set(letters)) == 2000
    assert letters[25:28] == ["Z", "AA", "AB"]


def test_it_is_plain_json() -> None:
    text = json.dumps(playback(story()), allow_nan=False)
    assert json.loads(text) == playback(story())


@pytest.mark.parametrize("max_steps", [0, 1, 30])
def test_runs_that_have_hardly_begun_are_no_trouble(max_steps: int) -> None:
    payload = playback(story(max_steps=max_steps), live=True)
    for pane in payload["panes"]:
        assert pane["num_steps"] == max_steps
        assert len(pane["start_s"]) == max_steps + 1
        assert pane["status"] == "unfinished"


def test_no_traces_at_all_are_no_trouble() -> None:
    assert playback([])["panes"] == []


def test_it_grows_with_tokens_and_not_with_slots_times_steps() -> None:
    def size(trace: Trace) -> int:
        return len(json.dumps(playback([trace])))

    few = size(make_trace(Policy.STATIC, 2, [400, 3], runner=RunnerKind.SCRIPTED))
    many = size(make_trace(Policy.STATIC, 64, [400, 3], runner=RunnerKind.SCRIPTED))
    assert many < few + 100


def test_a_run_keeps_its_id_while_it_grows_and_when_it_is_scheduled_anew() -> None:
    young, old = playback(story(max_steps=10), version=1, live=True), playback(story(), version=9)
    other = playback(story(num_slots=2))
    assert young["run_id"] == old["run_id"] == other["run_id"]
    assert len({young["content"], old["content"], other["content"]}) == 3
    assert playback(story(lengths=(3, 4)))["run_id"] != old["run_id"]
    assert playback(story(), run_id="mine")["run_id"] == "mine"


def test_the_poster_shows_held_slots_where_there_are_any() -> None:
    payload = playback(story())
    step = payload["poster_step"]
    held = [slot.phase for slot in story()[0].steps[step].slots].count(SlotPhase.HELD)
    assert held == 3


def test_whatever_a_pane_is_named_by_makes_another_payload() -> None:
    trace = story()[0]
    configs = [
        trace.config,
        replace(trace.config, kv_budget_tokens=4_000),
        replace(trace.config, kv_budget_tokens=5_000),
        replace(trace.config, group_timeout=3),
        replace(trace.config, prefill=PrefillMode.CHUNKED, max_batched_tokens=64),
        replace(trace.config, prefill=PrefillMode.CHUNKED, max_batched_tokens=65),
    ]
    payloads = [playback([replace(trace, config=config)]) for config in configs]
    assert len({payload["run_id"] for payload in payloads}) == 1
    assert len({payload["content"] for payload in payloads}) == len(configs)


@pytest.mark.parametrize(
    ("policies", "changes", "labels"),
    [
        ("static continuous", [{}, {}], ["Static", "Continuous"]),
        ("static static", [{}, {}], ["Static, 4 slots (1)", "Static, 4 slots (2)"]),
        ("static static", [{}, {"num_slots": 8}], ["Static, 4 slots", "Static, 8 slots"]),
        (
            "continuous static continuous",
            [{"prefill": PrefillMode.EXCLUSIVE}, {}, {"prefill": PrefillMode.CHUNKED, "max_batched_tokens": 64}],
            ["Continuous, exclusive prefill", "Static", "Continuous, chunked prefill by 64"],
        ),
        ("static static", [{}, {"kv_budget_tokens": 4_000}], ["Static, no KV limit", "Static, 4,000 KV tokens"]),
    ],
)
def test_panes_are_named_by_what_they_differ_in(
    policies: str, changes: list[dict[str, Any]], labels: list[str]
) -> None:
    traces = [make_trace(Policy(policy), 4) for policy in policies.split()]
    traces = [
        replace(trace, config=replace(trace.config, **change)) for trace, change in zip(traces, changes, strict=True)
    ]
    assert pane_labels(traces) == labels
