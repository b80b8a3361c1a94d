"""The rules of the step, for any workload: against an independent oracle, and as properties."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.check import check_trace
from batchviz.metrics import request_results, slot_steps
from batchviz.scheduler import Policy
from batchviz.trace import SlotPhase, Trace
from batchviz.trace_file import trace_to_json
from tests.builders import scripted_trace

Workload = tuple[list[int], list[int], int]
workloads = st.integers(1, 14).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 25), min_size=n, max_size=n),
        st.lists(st.integers(0, 30), min_size=n, max_size=n),
        st.integers(1, 6),
    )
)
policies = st.sampled_from(list(Policy))


def oracle(policy: str, lengths: list[int], arrivals: list[int], slots: int) -> list[tuple[int, int, int]]:
    """(admitted, finished, delivered) of each request, from arithmetic alone. Shares nothing with the scheduler."""
    order = sorted(range(len(lengths)), key=lambda i: arrivals[i])
    times: list[tuple[int, int, int]] = [(0, 0, 0)] * len(lengths)
    if policy == "continuous":
        free_from = [0] * slots
        for i in order:  # the head takes the slot that is free first
            start = max(arrivals[i], min(free_from))
            free_from[free_from.index(min(free_from))] = start + lengths[i]
            times[i] = (start, start + lengths[i] - 1, start + lengths[i] - 1)
    else:
        size, clock = (1 if policy == "sequential" else slots), 0
        while order:
            clock = max(clock, arrivals[order[0]])
            group = [i for i in order[:size] if arrivals[i] <= clock]
            order = order[len(group) :]
            end = clock + max(lengths[i] for i in group)
            for i in group:
                times[i] = (clock, clock + lengths[i] - 1, end - 1)
            clock = end
    return times


def run(policy: Policy, workload: Workload) -> Trace:
    lengths, arrivals, slots = workload
    return scripted_trace(policy, slots, lengths, [float(arrival) for arrival in arrivals])


@settings(max_examples=300, deadline=None)
@given(policies, workloads)
def test_schedule_equals_the_oracle(policy: Policy, workload: Workload) -> None:
    trace = run(policy, workload)
    got = [(r.admitted_step, r.finished_step, r.delivered_step) for r in request_results(trace)]
    assert got == oracle(policy.value, *workload)
    assert len(trace.steps) == max(delivered for _, _, delivered in oracle(policy.value, *workload)) + 1


@settings(max_examples=150, deadline=None)
@given(policies, workloads)
def test_every_invariant_holds(policy: Policy, workload: Workload) -> None:
    assert check_trace(run(policy, workload)) == []


@settings(max_examples=100, deadline=None)
@given(policies, workloads)
def test_slot_steps_are_conserved(policy: Policy, workload: Workload) -> None:
    trace = run(policy, workload)
    counted = slot_steps(trace)
    assert counted.total == trace.config.num_slots * len(trace.steps)
    assert counted.working == sum(workload[0])
    assert counted.stalled == 0
    if policy is not Policy.STATIC:
        assert counted.held == 0


@settings(max_examples=100, deadline=None)
@given(workloads)
def test_continuous_leaves_no_slot_empty_while_somebody_waits(workload: Workload) -> None:
    for snapshot in run(Policy.CONTINUOUS, workload).steps:
        assert not (snapshot.num_waiting and any(slot.phase is SlotPhase.EMPTY for slot in snapshot.slots))


@settings(max_examples=100, deadline=None)
@given(policies, workloads)
def test_first_come_first_served(policy: Policy, workload: Workload) -> None:
    admitted = [(r.request.arrival, r.admitted_step) for r in request_results(run(policy, workload))]
    in_order = sorted(admitted, key=lambda pair: pair[0])  # stable: ties keep the request list's order
    assert [step for _, step in in_order] == sorted(step for _, step in in_order if step is not None)


@settings(max_examples=100, deadline=None)
@given(workloads)
def test_continuous_never_finishes_later_than_static(workload: Workload) -> None:
    static, continuous = (
        request_results(run(Policy.STATIC, workload)),
        request_results(run(Policy.CONTINUOUS, workload)),
    )
    for ours, theirs in zip(continuous, static, strict=True):
        assert ours.finished_step is not None
        assert theirs.finished_step is not None
        assert ours.finished_step <= theirs.finished_step


@settings(max_examples=50, deadline=None)
@given(policies, workloads)
def test_the_same_run_gives_the_same_bytes(policy: Policy, workload: Workload) -> None:
    assert trace_to_json(run(policy, workload)) == trace_to_json(run(policy, workload))


@settings(max_examples=100, deadline=None)
@given(policies, workloads)
def test_every_waiting_request_has_a_reason_in_every_step(policy: Policy, workload: Workload) -> None:
    trace = run(policy, workload)
    for snapshot in trace.steps:
        waiting = trace.waiting(snapshot.step)
        assert len(waiting) == snapshot.num_waiting
        assert [request_id for request_id, _ in waiting[:1]] == ([snapshot.head] if snapshot.head else [])
        assert all(reason.value == "behind_head" for _, reason in waiting[1:])
