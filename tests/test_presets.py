"""The presets are scenario files like anybody's, and each shows what its sentence says one should look for."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from batchviz.prefill import PrefillMode
from batchviz.presets import (
    PRESET_NAMES,
    SCRIPTED_PRESET_NAMES,
    list_presets,
    list_scripted_presets,
    load_scenario,
)
from batchviz.runs import scenario_config, scripted_run
from batchviz.scenario import Scenario, ScenarioError
from batchviz.scenario_file import dump_scenario, parse_scenario
from batchviz.scheduler import Policy
from batchviz.trace import SlotPhase, Trace

# (prompt tokens, output tokens) that SmolLM2-135M-Instruct (the pinned weights, float32, greedy) had on 2026-11-29.
MEASURED = {
    "yes-no": (40, 3),
    "summary": (40, 200),
    "capital": (37, 8),
    "one-sentence": (36, 30),
    "colors": (35, 13),
    "sleep-tips": (38, 107),
    "emoji": (43, 10),
    "count": (36, 52),
    "opposite": (42, 8),
    "blue-sky": (36, 160),
    "week": (38, 9),
    "gravity": (39, 32),
    "fruits": (34, 24),
    "party": (42, 65),
    "sum": (38, 12),
    "computer": (39, 28),
    "report": (613, 40),  # cut off at its max_tokens
}


def measured(request_id: str) -> tuple[int, int]:
    return MEASURED[request_id.removesuffix(" again")]


def with_measured_lengths(scenario: Scenario) -> Scenario:
    requests = tuple(
        replace(request, prompt=None, prompt_tokens=measured(request.id)[0], output_tokens=measured(request.id)[1])
        for request in scenario.requests
    )
    return replace(scenario, requests=requests)


def run(name: str, policy: Policy, num_slots: int | None = None, **settings: Any) -> Trace:
    scenario = load_scenario(name)
    if scenario.has_words:
        scenario = with_measured_lengths(scenario)
    return scripted_run(scenario, scenario_config(scenario, policy, num_slots, **settings)).finish()


def num_slot_steps(trace: Trace, phase: SlotPhase) -> int:
    return sum(slot.phase is phase for step in trace.steps for slot in step.slots)


def delivered_steps(trace: Trace) -> dict[str, int]:
    return {event.request_id: event.step for event in trace.events() if event.kind == "delivered"}


def mean_wait(trace: Trace) -> float:
    """In steps; every request of these presets arrives at step 0."""
    waits = [step + 1 for step in delivered_steps(trace).values()]
    return sum(waits) / len(waits)


def test_the_page_opens_with_four_slots_and_the_order_is_fixed() -> None:
    assert tuple(scenario.name for scenario in list_presets()) == PRESET_NAMES
    assert PRESET_NAMES[0] == "four-slots"
    assert tuple(scenario.name for scenario in list_scripted_presets()) == SCRIPTED_PRESET_NAMES


def test_every_preset_file_is_a_preset() -> None:
    files = {item.name.removesuffix(".yaml") for item in (resources.files("batchviz") / "preset_files").iterdir()}
    assert files == {*PRESET_NAMES, *SCRIPTED_PRESET_NAMES}


@pytest.mark.parametrize("name", PRESET_NAMES + SCRIPTED_PRESET_NAMES)
def test_a_preset_has_a_title_and_one_sentence_and_survives_a_round_trip(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.title != scenario.name
    assert scenario.look_for.endswith(".")
    assert ". " not in scenario.look_for, "one sentence"
    assert parse_scenario(dump_scenario(scenario).encode(), "x.yaml", is_json=False) == scenario


@pytest.mark.parametrize("name", PRESET_NAMES)
def test_a_preset_for_the_model_has_words_and_real_ends(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.has_words
    for request in scenario.requests:
        assert request.output_tokens is None, "its end tokens would be masked"
        _, num_output_tokens = measured(request.id)
        assert num_output_tokens <= request.max_tokens <= 200


@pytest.mark.parametrize("name", SCRIPTED_PRESET_NAMES)
def test_a_preset_without_words_has_exact_lengths(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.has_exact_lengths
    assert not scenario.has_words


def test_the_same_id_asks_the_same_in_every_preset() -> None:
    prompts: dict[str, str | None] = {}
    for scenario in list_presets():
        for request in scenario.requests:
            assert prompts.setdefault(request.id, request.prompt) == request.prompt


def test_the_lengths_are_spread_from_three_to_two_hundred() -> None:
    for name in ("four-slots", "eight-chats", "sixteen-chats"):
        lengths = [MEASURED[request.id][1] for request in load_scenario(name).requests]
        assert (min(lengths), max(lengths)) == (3, 200)


def test_four_slots_shows_all_three_harms_on_the_left_and_none_on_the_right() -> None:
    static, continuous = run("four-slots", Policy.STATIC), run("four-slots", Policy.CONTINUOUS)
    held = num_slot_steps(static, SlotPhase.HELD)
    finished = {event.request_id: event.step for event in static.events() if event.kind == "finished"}
    withheld = {request_id: step - finished[request_id] for request_id, step in delivered_steps(static).items()}
    assert held > 0
    assert max(withheld.values()) == 197, "the yes-or-no answer is there after 3 steps and delivered after 200"
    assert any(slot.phase is SlotPhase.HELD and step.num_waiting > 0 for step in static.steps for slot in step.slots), (
        "a slot-step is wasted: somebody waits while a slot is held"
    )
    assert num_slot_steps(continuous, SlotPhase.HELD) == 0
    assert (len(static.steps), len(continuous.steps)) == (307, 200)
    for step in continuous.steps:
        assert step.num_waiting == 0 or all(slot.phase is not SlotPhase.EMPTY for slot in step.slots)


def test_eight_chats_differ_in_the_waiting_alone() -> None:
    static, continuous = run("eight-chats", Policy.STATIC), run("eight-chats", Policy.CONTINUOUS)
    assert len(static.steps) == len(continuous.steps) == 200
    assert all(step.num_waiting == 0 for step in static.steps + continuous.steps)
    assert (delivered_steps(static)["yes-no"], delivered_steps(continuous)["yes-no"]) == (199, 2)


def test_sixteen_chats_have_a_queue_that_refills() -> None:
    static, continuous = run("sixteen-chats", Policy.STATIC), run("sixteen-chats", Policy.CONTINUOUS)
    assert static.steps[0].num_waiting == continuous.steps[0].num_waiting == 8
    later = [step.step for step in static.steps if step.admitted and step.step > 0]
    assert later == [200], "all eight wait for the longest of the first group"
    assert len([step for step in continuous.steps if step.admitted and step.step > 0]) > 4, "one by one"
    assert len(continuous.steps) < len(static.steps)


def test_one_at_a_time_takes_as_many_steps_as_there_are_tokens() -> None:
    sequential, continuous = run("one-at-a-time", Policy.SEQUENTIAL), run("one-at-a-time", Policy.CONTINUOUS)
    num_tokens = sum(MEASURED[request.id][1] for request in load_scenario("one-at-a-time").requests)
    assert len(sequential.steps) == num_tokens
    assert num_slot_steps(sequential, SlotPhase.EMPTY) == 0
    assert len(continuous.steps) < num_tokens / 2


def test_the_golden_lengths_have_their_golden_numbers() -> None:
    assert len(run("golden-lengths", Policy.SEQUENTIAL).steps) == 448
    assert len(run("golden-lengths", Policy.STATIC).steps) == 320
    assert len(run("golden-lengths", Policy.CONTINUOUS).steps) == 200


@pytest.mark.parametrize("num_slots", [1, 2, 3, 4, 5, 8, 16])
def test_equal_lengths_gain_nothing_at_any_number_of_slots(num_slots: int) -> None:
    static, continuous = (run("equal-lengths", policy, num_slots) for policy in (Policy.STATIC, Policy.CONTINUOUS))
    assert len(static.steps) == len(continuous.steps)
    assert delivered_steps(static) == delivered_steps(continuous)


def test_a_long_one_that_comes_last_is_mended_by_no_policy() -> None:
    assert len(run("long-one-last", Policy.STATIC).steps) == 203
    assert len(run("long-one-last", Policy.CONTINUOUS).steps) == 203


def test_static_batching_can_be_worse_than_none() -> None:
    static, sequential = (run("static-worse-than-sequential", policy) for policy in (Policy.STATIC, Policy.SEQUENTIAL))
    assert (len(static.steps), len(sequential.steps)) == (420, 448)
    assert (mean_wait(static), mean_wait(sequential)) == (305, 267.25)


def test_few_users_never_meet_however_long_their_answers_are() -> None:
    requests = load_scenario("few-users").requests
    for request, following in pairwise(requests):
        assert following.arrival >= request.arrival + request.max_tokens
    for prefill in ("mixed", "exclusive"):
        static, continuous = (
            run("few-users", policy, prefill=PrefillMode(prefill)) for policy in (Policy.STATIC, Policy.CONTINUOUS)
        )
        assert static.steps == continuous.steps, "no gain: every step is the same"
        assert all(step.num_waiting == 0 for step in static.steps)


def stalled(trace: Trace) -> dict[str, int]:
    """Request -> how many steps it sat in a slot and got nothing."""
    names = [slot.request_id for step in trace.steps for slot in step.slots if slot.phase is SlotPhase.STALLED]
    return {str(name): names.count(name) for name in names}


def test_a_long_prompt_stalls_the_others_in_exclusive_and_nobody_in_the_other_modes() -> None:
    exclusive = run("long-prompt", Policy.CONTINUOUS)
    assert stalled(exclusive)["sleep-tips"] >= 1
    long_step = max(exclusive.steps, key=lambda step: step.duration_s)
    assert (long_step.step, long_step.num_rows) == (12, 613)
    assert [slot.phase for slot in long_step.slots] == [*[SlotPhase.STALLED] * 3, SlotPhase.PREFILL]
    mixed = run("long-prompt", Policy.CONTINUOUS, prefill=PrefillMode.MIXED)
    chunked = run("long-prompt", Policy.CONTINUOUS, prefill=PrefillMode.CHUNKED, max_batched_tokens=64)
    assert not stalled(mixed)
    assert not stalled(chunked)
    longest = [max(step.duration_s for step in trace.steps[1:]) for trace in (exclusive, mixed, chunked)]
    assert longest[0] > 5 * longest[2], "in seconds, mixed hides nothing and chunked spreads it"
    assert longest[1] > 5 * longest[2]


def test_a_burst_queues_and_a_trickle_does_not_unless_it_waits_for_a_group() -> None:
    scenario = load_scenario("burst-and-trickle")
    first, second = scenario.requests[:6], scenario.requests[6:]
    assert [(r.prompt, r.max_tokens, f"{r.id} again") for r in first] == [
        (r.prompt, r.max_tokens, r.id) for r in second
    ]
    static, continuous = run("burst-and-trickle", Policy.STATIC), run("burst-and-trickle", Policy.CONTINUOUS)
    for trace in (static, continuous):
        assert trace.steps[0].num_waiting == 2, "six people, four slots"
        assert max(delivered_steps(trace)[r.id] for r in first) < min(r.arrival for r in second)
    trickle = int(second[0].arrival)
    assert all(step.num_waiting == 0 for step in continuous.steps[trickle:])
    assert any(step.num_waiting > 0 for step in static.steps[trickle:])


def test_a_name_is_a_preset_even_beside_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("four-slots").write_text("not a scenario")
    assert load_scenario("four-slots").num_slots == 4


def test_a_file_is_loaded_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "requests: [{id: A, prompt: Hi, max_tokens: 1}]"
    (tmp_path / "mine.yaml").write_text(content)
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text(content)
    assert load_scenario(str(tmp_path / "mine.yaml")) == load_scenario("mine.yaml") == load_scenario("mine")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("four-slot", "there is no preset and no file called 'four-slot'; did you mean four-slots?"),
        ("Eight-Chat", "did you mean eight-chats?"),
        ("zebra", "there is no preset and no file called 'zebra'; the presets are four-slots, eight-chats, "),
        ("", "there is no preset and no file called ''; the presets are four-slots"),
        (
            "gone.yaml",
            "gone.yaml does not exist; give the path of a YAML, JSON, CSV or JSONL file, or a preset: four-slots, ",
        ),
        (
            os.path.join("a", "b"),
            "does not exist; give the path of a YAML, JSON, CSV or JSONL file, or a preset: four-slots, ",
        ),
        ("\x1b[2J", "there is no preset and no file called '\\x1b[2J'; the presets are"),
        ("a\0b", "there is no preset and no file called 'a\\x00b'; the presets are"),
        ("x" * 5000, "there is no preset and no file called 'xxx"),
        (".", ". is a folder; name a YAML or JSON file in it"),
    ],
)
def test_a_name_that_means_nothing_is_refused_in_one_sentence(name: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(name)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
