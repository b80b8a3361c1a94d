"""The story is true, complete enough, short enough, and never ahead of its trace."""

from __future__ import annotations

import pytest

from batchviz.narrate import MAX_LENGTH, Sentence, narrate, narration
from batchviz.scheduler import Policy
from batchviz.timeline import read_timeline
from batchviz.trace import Trace
from tests.story import make_trace, story


def at(sentences: list[Sentence], step: int) -> str:
    return next(sentence.text for sentence in sentences if sentence.step == step)


def test_the_first_finish_contrasts_a_slot_held_with_a_slot_refilled() -> None:
    text = at(narrate(story()), 2)
    assert text == (
        "A is finished after 3 tokens: “No.” Static: its slot is held, unused, for 197 more steps; its answer is withheld "
        "until B is finished. Continuous: delivered at once; E slides into the freed slot at the next step."
    )


def test_steps_held_are_those_of_the_trace() -> None:
    trace = story()[0]
    held = sum(1 for step in trace.steps for slot in step.slots if slot.phase == "held" and slot.request_id == "yes-no")
    assert held == 197


def test_the_end_gives_the_golden_figures() -> None:
    text = narrate(story())[-1].text
    for figure in (
        "static 320 steps",
        "continuous 200 steps",
        "260 steps under static",
        "61.75 steps under continuous",
    ):
        assert figure in text
    assert "832 of 1,280 under static and 0 of 800 under continuous" in text


def test_the_group_ends_together() -> None:
    text = at(narrate(story()), 199)
    assert "A, B, C and D are delivered together" in text
    assert "The answer of A had been withheld for 197 steps." in text


ODD_RUNS = [
    story(),
    story(num_slots=8),
    story(num_slots=1),
    story(lengths=(1,), num_slots=1),
    story(max_steps=0),
    story(max_steps=1),
    story(aborts={1: "rome", 6: "banana", 250: "fox"}),
    story(arrivals=[0, 3, 3, 9, 9, 9, 40, 400]),
    story(lengths=[5, 9] * 100, num_slots=64),
    story(ids=["x" * 5000, "y" * 5000], lengths=(4, 6), num_slots=2, prompts=["p" * 9000, "q"]),
    [make_trace(policy, 4) for policy in Policy],
    [make_trace(Policy.STATIC, 2), make_trace(Policy.STATIC, 4)],
    story(slot_capacity=100),
]


@pytest.mark.parametrize("traces", ODD_RUNS)
def test_every_story_is_in_order_sparse_and_short(traces: list[Trace]) -> None:
    told = narration([read_timeline(trace) for trace in traces])
    for sentences in (told.joint, *told.panes):
        steps = [sentence.step for sentence in sentences]
        assert steps == sorted(set(steps))
        for sentence in sentences:
            assert sentence.text.strip()
            assert len(sentence.text) <= max(MAX_LENGTH, 170 * len(traces))
            assert "None" not in sentence.text


@pytest.mark.parametrize("num_steps", range(1, 320, 23))
def test_an_unfinished_run_claims_nothing_that_its_trace_does_not_hold(num_steps: int) -> None:
    whole = {sentence.step: sentence.text for sentence in narrate(story())}
    for sentence in narrate(story(max_steps=num_steps)):
        assert "The end." not in sentence.text
        assert "This run is over" not in sentence.text or num_steps > 199
        if " more steps" in sentence.text:  # a number of steps is said only once the trace has reached their end
            assert whole[sentence.step] == sentence.text
        if "slides into" in sentence.text:
            assert sentence.step + 1 < num_steps


def test_harms_are_not_mixed() -> None:
    for sentence in narrate(story()):
        assert "slot is withheld" not in sentence.text
        assert "answer is held" not in sentence.text
        if "Continuous:" in sentence.text:
            assert "held" not in sentence.text.split("Continuous:")[1].split("The answer of")[0]


def test_two_runs_of_one_policy_are_told_apart() -> None:
    text = narrate([make_trace(Policy.STATIC, 2), make_trace(Policy.STATIC, 4)])[1].text
    assert "Static, 2 slots:" in text
    assert "Static, 4 slots:" in text
