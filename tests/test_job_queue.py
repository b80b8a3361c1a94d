"""Live runs queue by turns, and their waits are told from what was measured, or not at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from batchviz.job_queue import JobQueue, Pace
from batchviz.jobs import Job, JobState


def job_of(number: int, viewer: str, num_tokens: int = 10) -> Job:
    return Job(number, "", (), viewer=viewer, num_asked_tokens=num_tokens)


def order_of(queue: JobQueue) -> list[int]:
    return [queue.popleft().id for _ in range(len(queue))]


def test_who_asks_for_five_runs_does_not_make_the_others_wait_for_all_five() -> None:
    queue = JobQueue()
    for number in range(5):
        queue.append(job_of(number, "eager"))
    assert queue.popleft().id == 0  # runs already
    queue.append(job_of(5, "second"))
    queue.append(job_of(6, "third"))
    queue.append(job_of(7, "second"))
    assert order_of(queue) == [5, 6, 1, 7, 2, 3, 4]


def test_who_waited_long_ago_gains_nothing_and_loses_nothing_by_it() -> None:
    queue = JobQueue()
    for number in range(4):
        queue.append(job_of(number, "eager"))
    assert [queue.popleft().id for _ in range(4)] == [0, 1, 2, 3]
    queue.append(job_of(4, "new"))
    queue.append(job_of(5, "eager"))
    queue.append(job_of(6, "newer"))
    assert order_of(queue) == [4, 6, 5]


def test_who_is_nobody_in_particular_goes_as_they_come() -> None:
    queue = JobQueue()
    for number in range(3):
        queue.append(job_of(number, ""))
    assert order_of(queue) == [0, 1, 2]


@given(some.lists(some.one_of(some.sampled_from("abc"), some.none()), max_size=40))
def test_while_somebody_waits_nobody_else_has_three_turns(happenings: list[str | None]) -> None:
    """None takes the next one. Among three runs of one viewer, every other who waited all the while has one."""
    queue, waiting, served = JobQueue(), [], []
    for number, viewer in enumerate(happenings):
        if viewer is not None:
            queue.append(job_of(number, viewer))
        elif len(queue):
            waiting.append({job.viewer for job in queue})
            served.append(queue.popleft().viewer)
    for viewer in "abc":
        turns = [index for index, one in enumerate(served) if one == viewer]
        for first, third in zip(turns, turns[2:], strict=False):
            all_the_while = set.intersection(*waiting[first : third + 1])
            assert all_the_while <= set(served[first : third + 1])


def test_places_are_counted_from_one() -> None:
    queue = JobQueue()
    jobs = [job_of(number, viewer) for number, viewer in enumerate("aab")]
    for job in jobs:
        queue.append(job)
    assert [queue.place(job) for job in jobs] == [1, 3, 2]
    assert queue.before(jobs[1]) == [jobs[0], jobs[2]]
    queue.remove(jobs[2])
    assert [queue.place(job) for job in jobs] == [1, 2, 0]


def test_a_wait_is_unknown_until_something_was_measured() -> None:
    pace = Pace()
    assert pace.wait_s([job_of(1, "a")], None, 5.0) is None
    pace.measured(30.0, 300)
    assert pace.wait_s([job_of(1, "a", 50), job_of(2, "b", 150)], None, 5.0) == 20.0


def test_what_is_left_of_the_run_that_goes_on_counts_and_never_less_than_nothing() -> None:
    pace = Pace()
    pace.measured(30.0, 300)
    current = job_of(1, "a", 100)
    assert pace.wait_s([], current, 1_000.0) == 10.0  # the model is not ready yet
    current.state, current.began_s = JobState.RUNNING, 1_000.0
    assert pace.wait_s([], current, 1_004.0) == 6.0
    assert pace.wait_s([job_of(2, "b", 20)], current, 1_050.0) == 2.0
