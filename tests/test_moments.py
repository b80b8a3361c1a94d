"""Moments by name are the steps that a scan of the trace finds, and nonsense is refused in a sentence."""

from __future__ import annotations

import pytest

from batchviz.lesson_runs import run_of
from batchviz.moments import NAMES


def test_moments_of_a_known_run() -> None:
    static, continuous = run_of("golden-lengths", "static"), run_of("golden-lengths", "continuous")
    assert static.moment("start") == 0
    assert static.moment("end") == 319
    assert static.moment("first_finish") == 2
    assert static.moment("first_held") == 3
    assert static.moment("first_delivery") == 199
    assert static.moment("first_refill") == 200
    assert continuous.moment("first_refill") == 3
    assert continuous.moment("first_held") is None
    assert continuous.moment("first_stall") is None
    assert continuous.moment("step 199") == 199
    assert continuous.moment("step 200") is None
    assert static.moment("delivered A") == 199
    assert static.moment("admitted E") == 200


@pytest.mark.parametrize("name", NAMES)
def test_every_named_moment_is_where_a_scan_finds_it(name: str) -> None:
    trace = run_of("four-slots", "static").trace
    step = run_of("four-slots", "static").moment(name)
    if name == "longest_step":
        assert step is not None
        assert trace.steps[step].duration_s == max(one.duration_s for one in trace.steps)
    elif name == "first_decode":
        assert step == 1
    elif name == "first_stall":
        assert step is None
    else:
        assert step is not None
        assert 0 <= step < len(trace.steps)


@pytest.mark.parametrize("text", ["", "lunch", "step", "step -1", "step x", "admitted", "admitted nobody", "end now"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a moment|no request is called"):
        run_of("four-slots", "static").moment(text)
