"""What `make load` says: percentiles by nearest rank, and every promise that was not kept."""

from __future__ import annotations

import math

import pytest

from tests.load.figures import Figures, Size, broken_promises, percentile, report


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(n) for n in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile(values, 1.0)) == (50.0, 95.0, 100.0)
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([], 0.95) == math.inf


def kept() -> Figures:
    live_s = {"seek": [0.1] * 10, "chart": [0.1] * 9 + [9.0]}
    return Figures(first_paint_s=[0.5] * 29 + [9.0], live_s=live_s, num_viewers=30)


def test_one_slow_page_in_thirty_breaks_no_promise() -> None:
    assert broken_promises(kept()) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"first_paint_s": [0.5] * 28 + [9.0] * 2}, "first paint: p95 is not below 3 s"),
        (
            {"live_s": {"seek": [0.5] * 2, "chart": [0.1] * 20}},
            "interactions beside a live run: p95 is not below 500 ms",
        ),
        ({"live_s": {}}, "interactions beside a live run"),
        ({"after": Size(1, 1)}, "memory or threads are not back within 10%"),
        ({"failures": ["gone", "gone"]}, "2 sessions failed: gone"),
    ],
)
def test_a_promise_that_was_not_kept_is_named(change: dict[str, object], sentence: str) -> None:
    figures = kept()
    for name, value in change.items():
        setattr(figures, name, value)
    (broken,) = broken_promises(figures)
    assert sentence in broken


def test_interactions_are_told_together_and_by_kind() -> None:
    lines = report(kept()).splitlines()
    assert "interactions beside a live run   p50 0.10 s, p95 0.10 s, n 20" in lines
    assert "  chart                          p50 0.10 s, p95 9.00 s, n 10" in lines
    assert "interactions, no live run        none" in lines


def test_memory_is_told_for_each_viewer_and_whether_it_came_back() -> None:
    figures = kept()
    figures.before, figures.idle, figures.after = Size(200, 10), Size(260, 12), Size(221, 10)
    assert "2.0 MB a viewer" in report(figures)
    assert "221 MB, 10 threads; back within 10 %: no" in report(figures)
    figures.after = Size(219, 11)
    assert figures.is_back
    figures.after = Size(219, 12)
    assert not figures.is_back
