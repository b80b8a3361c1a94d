"""What was measured under load, what was promised, and how both are said.

Owns: Figures, percentiles, the report. Must not know: sockets, browsers, processes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

FIRST_PAINT_S = 3.0
INTERACTION_S = 0.5
BACK_WITHIN = 0.10


@dataclass(frozen=True)
class Size:
    """A process at one moment."""

    memory_mb: float
    num_threads: int


@dataclass
class Figures:
    """Seconds are lists, one entry an event."""

    machine: str = ""
    first_visitor_s: float = 0.0
    first_answer_s: list[float] = field(default_factory=list)
    first_paint_s: list[float] = field(default_factory=list)
    whole_page_s: list[float] = field(default_factory=list)
    at_rest_s: dict[str, list[float]] = field(default_factory=dict)  # by kind of interaction, without a live run
    live_s: dict[str, list[float]] = field(default_factory=dict)  # and beside one
    press_s: list[float] = field(default_factory=list)  # all ask for the same live run
    watch_s: list[float] = field(default_factory=list)  # and watch it
    browser_paint_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    num_viewers: int = 0
    live_steps: str = ""
    before: Size = Size(0, 0)
    idle: Size = Size(0, 0)
    after: Size = Size(0, 0)
    server_cpu: float = 0.0  # cores that the server's process used while viewers did something
    load_average: list[float] = field(default_factory=list)  # of the whole machine: before, with viewers

    @property
    def is_back(self) -> bool:
        """Whether memory and threads are back within 10 % of what they were before anybody came."""
        memory = self.after.memory_mb <= self.before.memory_mb * (1 + BACK_WITHIN)
        return memory and self.after.num_threads <= self.before.num_threads * (1 + BACK_WITHIN)


def together(by_kind: Mapping[str, Sequence[float]]) -> list[float]:
    """Interactions of every kind."""
    return [seconds for kind in by_kind.values() for seconds in kind]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed (nearest rank); infinite where there is none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.inf


def broken_promises(figures: Figures) -> list[str]:
    """One sentence for each promise that was not kept."""
    broken = []
    if percentile(figures.first_paint_s, 0.95) >= FIRST_PAINT_S:
        broken.append(f"first paint: p95 is not below {FIRST_PAINT_S:.0f} s")
    if percentile(together(figures.live_s), 0.95) >= INTERACTION_S:
        broken.append(f"interactions beside a live run: p95 is not below {INTERACTION_S * 1000:.0f} ms")
    if not figures.is_back:
        broken.append(f"after the viewers left, memory or threads are not back within {BACK_WITHIN:.0%}")
    if figures.failures:
        broken.append(f"{len(figures.failures)} sessions failed: {'; '.join(sorted(set(figures.failures))[:3])}")
    return broken


def report(figures: Figures) -> str:
    """The figures as lines of text."""
    per_viewer = (figures.idle.memory_mb - figures.before.memory_mb) / max(1, figures.num_viewers)
    lines = [
        f"machine                          {figures.machine}",
        f"viewers                          {figures.num_viewers}, failed {len(figures.failures)}",
        f"first visitor of a new server    {figures.first_visitor_s:.2f} s",
        f"the player in the first answer   {_seconds(figures.first_answer_s)}",
        f"first paint                      {_seconds(figures.first_paint_s)}",
        f"whole page after it              {_seconds(figures.whole_page_s)}",
        f"interactions, no live run        {_seconds(together(figures.at_rest_s))}",
        *_by_kind(figures.at_rest_s),
        f"interactions beside a live run   {_seconds(together(figures.live_s))}",
        *_by_kind(figures.live_s),
        f"all press Run it live            {_seconds(figures.press_s)}",
        f"all watch that run               {_seconds(figures.watch_s)}",
        f"player seen in a real browser    {', '.join(f'{s:.2f} s' for s in figures.browser_paint_s) or 'no browser'}",
        f"processor                        server {figures.server_cpu:.2f} cores; load average "
        + " → ".join(f"{load:.1f}" for load in figures.load_average),
        f"live run meanwhile               {figures.live_steps or 'none'}",
        f"server before anybody came       {_size(figures.before)}",
        f"server with idle viewers         {_size(figures.idle)}, {per_viewer:.1f} MB a viewer",
        f"server after they left           {_size(figures.after)}; back within 10 %: {'yes' if figures.is_back else 'no'}",
    ]
    return "\n".join(lines)


def _seconds(values: Sequence[float]) -> str:
    if not values:
        return "none"
    return f"p50 {percentile(values, 0.5):.2f} s, p95 {percentile(values, 0.95):.2f} s, n {len(values)}"


def _by_kind(by_kind: Mapping[str, Sequence[float]]) -> list[str]:
    return [f"  {kind:<31}{_seconds(values)}" for kind, values in sorted(by_kind.items())]


def _size(size: Size) -> str:
    return f"{size.memory_mb:.0f} MB, {size.num_threads} threads"
