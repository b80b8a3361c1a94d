"""Breakpoints hit where an independent scan of the trace says, and nowhere else, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.breakpoints import BreakpointError, parse_breakpoint
from batchviz.debug_start import ScriptedStart
from batchviz.debugger import DebugSession
from batchviz.kv_metrics import kv_steps
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import SlotPhase, Trace

Scan = Callable[[Trace, int], object]


def scenario_of(lengths: list[int], arrivals: list[int], prompts: list[int]) -> Scenario:
    requests = tuple(
        ScenarioRequest(f"r{i}", length, prompt_tokens=prompt, output_tokens=length, arrival=arrival)
        for i, (length, arrival, prompt) in enumerate(zip(lengths, arrivals, prompts, strict=True))
    )
    return Scenario("made-up", "Made up", requests)


def session_of(scenario: Scenario, policy: Policy, slots: int) -> DebugSession:
    return DebugSession(ScriptedStart(scenario, 1024), make_config(policy, slots))


workloads = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 12), min_size=n, max_size=n),
        st.lists(st.integers(0, 20), min_size=n, max_size=n),
        st.lists(st.integers(1, 30), min_size=n, max_size=n),
    )
)


def _waited(trace: Trace, step: int) -> dict[str, int]:
    came = {event.request_id: event.step for event in trace.events() if event.kind == "arrived"}
    return {name: step - came[name] + 1 for name, _ in trace.waiting(step)}


# What each says, scanned from the finished trace by other means: truthy where it holds.
EVENTS: dict[str, Scan] = {
    "step 4": lambda trace, step: step == 4,
    "arrived r0": lambda trace, step: "r0" in trace.steps[step].arrived,
    "admitted *": lambda trace, step: trace.steps[step].admitted,
    "first-token r1": lambda trace, step: next((at for at, _ in trace.tokens("r1")), None) == step,
    "finished *": lambda trace, step: trace.steps[step].finished,
    "delivered r2": lambda trace, step: "r2" in trace.steps[step].delivered,
    "token 0": lambda trace, step: any(slot.token_id == 0 for slot in trace.steps[step].slots),
    "reason length": lambda trace, step: any(end.reason == "length" for end in trace.steps[step].finished),
    "reason stop": lambda trace, step: False,
    "aborted *": lambda trace, step: False,
}
STATES: dict[str, Scan] = {
    "slot 0 empty": lambda trace, step: trace.steps[step].slots[0].phase is SlotPhase.EMPTY,
    "slot 1 held": lambda trace, step: trace.steps[step].slots[1].phase is SlotPhase.HELD,
    "slot * held": lambda trace, step: {
        i for i, slot in enumerate(trace.steps[step].slots) if slot.phase is SlotPhase.HELD
    },
    "slot 0 stalled": lambda trace, step: trace.steps[step].slots[0].phase is SlotPhase.STALLED,
    "waits * > 3": lambda trace, step: {name for name, steps in _waited(trace, step).items() if steps > 3},
    "queue empty": lambda trace, step: not trace.waiting(step),
    "queue > 1": lambda trace, step: len(trace.waiting(step)) > 1,
    "free-slot": lambda trace, step: (
        trace.waiting(step) and any(slot.phase is SlotPhase.EMPTY for slot in trace.steps[step].slots)
    ),
    "kv > 40": lambda trace, step: list(kv_steps(trace))[step].used > 40,
}


def expected_steps(text: str, trace: Trace) -> list[int]:
    steps = range(len(trace.steps))
    if text in EVENTS:
        return [step for step in steps if EVENTS[text](trace, step)]
    scan, found = STATES[text], []
    for step in steps:
        now, before = scan(trace, step), scan(trace, step - 1) if step else False
        is_new = (
            bool(now - (before or set()))
            if isinstance(now, set) and isinstance(before or set(), set)
            else (bool(now) and not before)
        )
        found += [step] if is_new else []
    return found


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([*EVENTS, *STATES]),
    workloads,
    st.sampled_from([Policy.STATIC, Policy.CONTINUOUS]),
    st.integers(2, 4),
)
def test_they_hit_where_a_scan_says_in_both_directions(
    text: str, workload: tuple[list[int], list[int], list[int]], policy: Policy, slots: int
) -> None:
    session = session_of(scenario_of(*workload), policy, slots)
    wanted = [parse_breakpoint(text)]
    forwards = []
    while (stop := session.run_until(wanted)).hits:
        forwards.append(stop.step)
    assert forwards == expected_steps(text, session.trace)
    backwards = [session.shown] if session.hits(wanted) else []
    while (stop := session.run_until(wanted, backwards=True)).hits:
        backwards.append(stop.step)
    assert backwards == forwards[::-1]


def test_several_conditions_must_hold_together() -> None:
    session = session_of(scenario_of([3, 9, 4, 6], [0] * 4, [5] * 4), Policy.STATIC, 2)
    stop = session.run_until([parse_breakpoint("slot * held and queue > 1")])
    assert (stop.step, stop.message) == (3, "slot 0 is held; 2 wait")
    assert session.run_until([parse_breakpoint("finished r1 and delivered r0")]).step == 8
    assert session.run_until([parse_breakpoint("finished r2 and finished r3")]).hits == ()


def test_any_of_several_breakpoints_stops_and_each_says_why() -> None:
    session = session_of(scenario_of([3, 9, 4], [0] * 3, [5] * 3), Policy.CONTINUOUS, 2)
    stop = session.run_until([parse_breakpoint("finished r0"), parse_breakpoint("step 2"), parse_breakpoint("step 1")])
    assert stop.message == "this is step 1"
    stop = session.run_until([parse_breakpoint("finished r0"), parse_breakpoint("step 2")])
    assert stop.message == "r0 finished; this is step 2"


def test_text_and_tokens_of_an_answer_are_found() -> None:
    from batchviz.debug_start import RecordedStart
    from batchviz.recordings import load_recording

    recordings = load_recording("four-slots")
    session = DebugSession(RecordedStart(recordings), make_config(Policy.CONTINUOUS, 4))
    stop = session.run_until([parse_breakpoint('text "Paris"')])
    assert "'Paris' in the answer to capital" in stop.message
    assert any("Paris" in (slot.text or "") for slot in session.facts().snapshot.slots)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is not a condition; write one like `finished r3`"),
        ("finished", "'finished' is not a condition; with 'finished' one can say: arrived R, admitted R"),
        ("queue > many", "'queue > many' is not a condition; with 'queue' one can say: queue empty, queue > 3"),
        ("slot 2 asleep", "slot 2 empty, slot 2 held"),
        ("lunch", "'lunch' is not a condition; `help break` lists them"),
        ("finished r1 and", "'finished r1 and' is not a condition"),
        ("\x1b[31m", r"'\x1b[31m' is not a condition"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_could_be_said(text: str, sentence: str) -> None:
    with pytest.raises(BreakpointError) as refusal:
        parse_breakpoint(text)
    assert sentence in str(refusal.value)


def test_a_text_may_hold_the_word_and() -> None:
    assert len(parse_breakpoint('text "salt and pepper"').conditions) == 1
    assert len(parse_breakpoint('text "salt and pepper" and step 3').conditions) == 2
