"""The checker finds what a scheduler could do wrong: every kind of lie in a trace is named at its step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from batchviz.check import check_trace
from batchviz.request import FinishReason
from batchviz.scheduler import Admission, Finish, Policy, WaitReason
from batchviz.trace import EMPTY_SLOT, SlotPhase, SlotSnapshot, StepSnapshot, Trace
from tests.builders import scripted_trace

LENGTHS = [2, 5, 3, 1]
STATIC = scripted_trace(Policy.STATIC, 2, LENGTHS, [0, 0, 0, 4])
CONTINUOUS = scripted_trace(Policy.CONTINUOUS, 2, LENGTHS, [0, 0, 0, 4])


def changed(trace: Trace, at: int, **fields: Any) -> Trace:
    steps = list(trace.steps)
    steps[at] = steps[at]._replace(**fields)
    return replace(trace, steps=tuple(steps))


def with_slot(snapshot: StepSnapshot, slot: int, value: SlotSnapshot) -> tuple[SlotSnapshot, ...]:
    return (*snapshot.slots[:slot], value, *snapshot.slots[slot + 1 :])


def test_an_honest_trace_has_nothing_wrong() -> None:
    assert check_trace(STATIC) == []
    assert check_trace(CONTINUOUS) == []


LIES = [
    (changed(CONTINUOUS, 1, step=7), "steps[1]: step is 7"),
    (changed(CONTINUOUS, 1, slots=CONTINUOUS.steps[1].slots[:1]), "1 slots; the configuration says 2"),
    (changed(CONTINUOUS, 0, arrived=("r0", "r1", "nobody")), "request 'nobody' is not in the scenario"),
    (changed(CONTINUOUS, 0, arrived=("r0", "r1")), "request 'r2' was due by this step and did not arrive"),
    (changed(CONTINUOUS, 0, arrived=("r0", "r1", "r2", "r3")), "request 'r3' arrives before its time"),
    (changed(CONTINUOUS, 0, arrived=("r1", "r0", "r2")), "out of order"),
    (changed(CONTINUOUS, 0, admitted=(Admission("r2", 0), Admission("r1", 1))), "first come first served give"),
    (changed(CONTINUOUS, 2, admitted=()), "first come first served give"),  # an empty slot while somebody waits
    (changed(STATIC, 2, admitted=(Admission("r2", 0),)), "first come first served give"),  # a group is running
    (
        changed(STATIC, 3, slots=with_slot(STATIC.steps[3], 0, EMPTY_SLOT)),
        "slots[0] shows None; 'r0' sits there",
    ),
    (
        changed(
            CONTINUOUS, 1, slots=with_slot(CONTINUOUS.steps[1], 0, CONTINUOUS.steps[1].slots[0]._replace(position=3))
        ),
        "feeds 1 from position 3; expected 1 from 10",
    ),
    (
        changed(CONTINUOUS, 1, slots=with_slot(CONTINUOUS.steps[1], 0, SlotSnapshot(SlotPhase.HELD, "r0")), num_rows=1),
        "slots[0] is held; by the steps before it is decode",
    ),
    (changed(CONTINUOUS, 1, num_rows=9), "num_rows is 9; the slots fed 2 tokens"),
    (changed(CONTINUOUS, 1, start_s=99.0), "start_s is 99.0"),
    (changed(CONTINUOUS, 1, forward_s=-1.0), "a duration is negative"),
    (changed(CONTINUOUS, 1, finished=()), "has all its 2 tokens and does not finish"),
    (changed(CONTINUOUS, 0, finished=(Finish("r1", FinishReason.LENGTH),)), "finishes by length with 1 of 5 tokens"),
    (
        changed(CONTINUOUS, 1, finished=(Finish("r0", FinishReason.STOP),)),
        "stops by itself, though its length is exact",
    ),
    (changed(CONTINUOUS, 1, delivered=()), "delivered []; the policy delivers ['r0']"),
    (changed(STATIC, 1, delivered=("r0",)), "delivered ['r0']; the policy delivers []"),
    (changed(CONTINUOUS, 0, num_waiting=0), "num_waiting is 0; 1 wait"),
    (changed(CONTINUOUS, 0, head="r1"), "head is 'r1'; expected 'r2'"),
    (changed(CONTINUOUS, 0, head_reason=WaitReason.GROUP_RUNNING), "head_reason is group_running"),
    (replace(CONTINUOUS, steps=CONTINUOUS.steps[:-1]), "never ended"),
    (replace(CONTINUOUS, config=replace(CONTINUOUS.config, num_slots=0)), "expected at least 1"),
]


@pytest.mark.parametrize(("trace", "sentence"), LIES, ids=[sentence for _, sentence in LIES])
def test_every_lie_is_named(trace: Trace, sentence: str) -> None:
    problems = check_trace(trace)
    assert problems
    assert sentence in problems[0]
