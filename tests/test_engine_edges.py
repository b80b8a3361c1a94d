"""Edges that engines in the field get wrong. Each test names what must be true."""

from __future__ import annotations

import pytest

from batchviz.check import check_trace
from batchviz.engine import MAX_IDLE_STEPS, Engine, EngineLimitError
from batchviz.metrics import RequestResult, request_results, run_metrics
from batchviz.request import FinishReason, Request, Sequence
from batchviz.runner import ScriptedRunner
from batchviz.scheduler import Policy, make_scheduler
from batchviz.trace import RunnerKind, SlotPhase, Trace
from tests.builders import END, make_engine, recorded_engine, requests_of, trace_of

POLICIES = list(Policy)


def real(request_id: str, max_tokens: int, *, prompt: tuple[int, ...] = (7, 8), arrival: int = 0) -> Request:
    return Request(request_id, prompt, max_tokens, arrival, frozenset({END, 3}))


def result_of(trace: Trace, request_id: str) -> RequestResult:
    return next(result for result in request_results(trace) if result.request.id == request_id)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("tokens", "max_tokens", "length", "reason"),
    [
        ([END], 5, 1, FinishReason.STOP),  # the end token comes first
        ([9, 9, END], 3, 3, FinishReason.STOP),  # exactly at max_tokens: it stopped by itself
        ([9, 9, 9], 3, 3, FinishReason.LENGTH),
        ([9], 1, 1, FinishReason.LENGTH),
        ([9, 3, 9], 5, 2, FinishReason.STOP),  # the second of two end tokens
    ],
)
def test_how_an_answer_ends(
    policy: Policy, tokens: list[int], max_tokens: int, length: int, reason: FinishReason
) -> None:
    requests = [real("a", max_tokens), real("b", 4)]
    engine = recorded_engine(policy, 2, requests, {"a": tokens, "b": [9, 9, 9, 9]})
    trace = trace_of(engine, policy, 2, requests, kind=RunnerKind.RECORDED)
    result = result_of(trace, "a")
    assert (result.num_output_tokens, result.finish_reason) == (length, reason)
    assert check_trace(trace) == []


def test_an_end_token_in_the_prompt_ends_nothing() -> None:
    requests = [real("a", 3, prompt=(END, 7, END))]
    trace = trace_of(recorded_engine(Policy.CONTINUOUS, 1, requests, {"a": [9, 9, 9]}), Policy.CONTINUOUS, 1, requests)
    assert result_of(trace, "a").finish_reason is FinishReason.LENGTH


def test_an_exact_length_masks_the_end_token() -> None:
    scheduler = make_scheduler(Policy.CONTINUOUS, 1)
    engine_requests = [Request("a", (7,), 9, 0, frozenset({END}), output_tokens=4)]
    engine = make_engine(Policy.CONTINUOUS, 1, engine_requests)
    assert len(engine.run()) == 4
    scheduler.waiting.append(Sequence(engine_requests[0]))
    assert scheduler.schedule(0, 0).scheduled[0].masked_token_ids == {END}


def test_an_empty_slot_never_lengthens_a_run() -> None:
    for policy in (Policy.STATIC, Policy.CONTINUOUS):
        assert len(make_engine(policy, 8, requests_of([5, 2])).run()) == 5


@pytest.mark.parametrize("policy", POLICIES)
def test_a_too_large_request_is_rejected_with_the_arithmetic_and_the_others_go_on(policy: Policy) -> None:
    requests = requests_of([4, 2000, 4], prompts=[10, 39, 10])
    trace = trace_of(make_engine(policy, 1, requests), policy, 1, requests)
    rejection = trace.steps[0].rejected[0]
    assert rejection.request_id == "r1"
    assert rejection.why == "needs 39 prompt + 2000 output tokens = 2039 KV positions; a slot has 1024"
    assert [r.finish_reason for r in request_results(trace)] == ["length", "rejected", "length"]
    assert result_of(trace, "r1").admitted_step is None
    assert run_metrics(trace).mean_e2e_steps == 6  # 4 and 8; the rejected one is left out
    assert check_trace(trace) == []


def test_a_request_that_fills_its_slot_exactly_is_served() -> None:
    requests = requests_of([24], prompts=[1000])
    assert len(make_engine(Policy.CONTINUOUS, 1, requests).run()) == 24


def test_a_freed_slot_with_someone_waiting_is_filled_in_the_very_next_step() -> None:
    requests = requests_of([3, 9, 4])
    trace = trace_of(make_engine(Policy.CONTINUOUS, 2, requests), Policy.CONTINUOUS, 2, requests)
    assert result_of(trace, "r0").finished_step == 2
    assert (result_of(trace, "r2").admitted_step, result_of(trace, "r2").slot) == (3, 0)


class TestAbort:
    """Takes effect before the next step's admissions, in each state a request can be in."""

    def test_while_waiting_it_leaves_the_queue(self) -> None:
        engine = make_engine(Policy.CONTINUOUS, 1, requests := requests_of([5, 5, 5]))
        engine.step()
        engine.abort("r1")
        snapshot = engine.step()
        assert snapshot.aborted == ("r1",)
        assert (snapshot.num_waiting, snapshot.head) == (1, "r2")
        rest = engine.run()
        assert [finish.request_id for step in rest for finish in step.finished] == ["r0", "r2"]
        assert len(requests) == 3

    def test_in_decode_its_slot_is_free_for_the_next_admission(self) -> None:
        engine = make_engine(Policy.CONTINUOUS, 1, requests_of([50, 5]))
        engine.step()
        engine.step()
        engine.abort("r0")
        snapshot = engine.step()
        assert snapshot.aborted == ("r0",)
        assert snapshot.admitted == (("r1", 0),)
        assert "r0" not in [request_id for step in engine.run() for request_id in step.delivered]

    def test_before_its_first_step_it_is_never_prefilled(self) -> None:
        engine = make_engine(Policy.CONTINUOUS, 1, requests_of([5]))
        engine.abort("r0")
        snapshots = engine.run()
        assert [step.aborted for step in snapshots] == [("r0",)]
        assert snapshots[0].slots[0].phase is SlotPhase.EMPTY

    def test_before_it_arrives_it_never_joins_the_queue(self) -> None:
        engine = make_engine(Policy.CONTINUOUS, 1, requests_of([2, 5], [0, 4]))
        engine.step()
        engine.abort("r1")
        snapshots = engine.run()
        assert snapshots[0].aborted == ("r1",)
        assert not any(step.arrived for step in snapshots)

    def test_in_the_step_that_finishes_it_changes_nothing_under_continuous(self) -> None:
        engine = make_engine(Policy.CONTINUOUS, 1, requests_of([1]))
        last = engine.step()
        engine.abort("r0")
        assert last.delivered == ("r0",)
        assert all(step.aborted == () for step in engine.run())

    def test_static_holds_the_slot_and_keeps_the_reason_of_what_was_finished(self) -> None:
        requests = requests_of([2, 6, 3])
        engine = make_engine(Policy.STATIC, 2, requests)
        engine.step()
        engine.step()  # r0 is finished and held
        engine.abort("r0")
        trace = trace_of(engine, Policy.STATIC, 2, requests)
        assert trace.steps[0].slots[0].phase is SlotPhase.HELD
        assert result_of(trace, "r0").delivered_step is None
        assert trace.steps[0].aborted == ("r0",)

    def test_static_running_member_is_held_until_its_group_ends(self) -> None:
        requests = requests_of([9, 4, 3])
        engine = make_engine(Policy.STATIC, 2, requests)
        engine.step()
        engine.abort("r0")
        snapshots = engine.run()
        assert snapshots[0].slots[0].phase is SlotPhase.HELD
        assert snapshots[2].delivered == ("r1",)  # step 3 ends the group
        assert snapshots[3].admitted == (("r2", 0),)

    def test_static_last_running_member_ends_the_group_before_admissions(self) -> None:
        engine = make_engine(Policy.STATIC, 2, requests_of([2, 90, 3]))
        for _ in range(3):
            engine.step()
        engine.abort("r1")
        snapshot = engine.step()
        assert snapshot.delivered == ("r0",)
        assert snapshot.admitted == (("r2", 0),)

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("at", [0, 1, 3, 4, 5, 9])
    def test_whenever_it_comes_every_rule_holds(self, policy: Policy, at: int) -> None:
        requests = requests_of([4, 12, 3, 5, 2], [0, 0, 0, 2, 8])
        for victim in range(5):
            engine = make_engine(policy, 2, requests)
            steps = [engine.step() for _ in range(at)]
            engine.abort(f"r{victim}")
            trace = trace_of(engine, policy, 2, requests)
            whole = Trace(trace.scenario, trace.config, trace.origin, tuple(steps) + trace.steps)
            assert check_trace(whole) == []
            ended = [f.request_id for s in whole.steps for f in s.finished]
            aborted = [request_id for s in whole.steps for request_id in s.aborted]
            assert sorted(set(ended + aborted)) == [f"r{i}" for i in range(5)]

    def test_an_unknown_id_is_named(self) -> None:
        with pytest.raises(KeyError, match="'nobody'"):
            make_engine(Policy.CONTINUOUS, 1, requests_of([1])).abort("nobody")


def test_a_request_added_in_mid_run_is_admitted_like_any_other() -> None:
    engine = make_engine(Policy.CONTINUOUS, 2, requests_of([6]))
    engine.step()
    engine.add(Request("late", (7,), 2, 0, output_tokens=2))
    snapshot = engine.step()
    assert snapshot.arrived == ("late",)
    assert snapshot.admitted == (("late", 1),)


def test_an_id_used_twice_is_refused() -> None:
    engine = make_engine(Policy.CONTINUOUS, 1, requests_of([1]))
    with pytest.raises(ValueError, match="'r0' is used twice"):
        engine.add(requests_of([3])[0])


def test_no_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 slot"):
        make_scheduler(Policy.STATIC, 0)


def test_idle_steps_are_steps_and_are_limited() -> None:
    engine = make_engine(Policy.CONTINUOUS, 2, requests_of([2, 2], [0, 5]))
    snapshots = engine.run()
    assert len(snapshots) == 7
    assert all(slot.phase is SlotPhase.EMPTY for step in snapshots[2:5] for slot in step.slots)
    assert sum(step.duration_s for step in snapshots[2:5]) == 0
    with pytest.raises(EngineLimitError, match="'r0' arrives at step 10001"):
        make_engine(Policy.CONTINUOUS, 2, requests_of([2], [MAX_IDLE_STEPS + 1])).run()


def test_a_runner_error_ends_one_sequence_and_nobody_else() -> None:
    requests = [real("a", 3), real("b", 3)]
    engine = recorded_engine(Policy.CONTINUOUS, 2, requests, {"a": [9], "b": [9, 9, 9]})
    trace = trace_of(engine, Policy.CONTINUOUS, 2, requests, kind=RunnerKind.RECORDED)
    assert result_of(trace, "a").finish_reason is FinishReason.ERROR
    assert result_of(trace, "a").delivered_step is None
    assert result_of(trace, "b").finish_reason is FinishReason.LENGTH
    assert check_trace(trace) == []


def test_a_step_costs_by_its_rows_in_a_scripted_run() -> None:
    runner = ScriptedRunner(lambda num_rows: 0.5 * num_rows)
    engine = Engine(make_scheduler(Policy.CONTINUOUS, 2), runner)
    engine.add_all(requests_of([2, 2], prompts=[10, 30]))
    assert [step.duration_s for step in engine.run()] == [20.0, 1.0]


def test_a_snapshot_cannot_be_changed() -> None:
    snapshot = make_engine(Policy.CONTINUOUS, 1, requests_of([1])).step()
    with pytest.raises(AttributeError):
        snapshot.step = 5  # type: ignore[misc]
