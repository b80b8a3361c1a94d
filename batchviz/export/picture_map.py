"""The map of a whole run in a picture: slots are rows, steps run left to right, each stretch in its request's colour.

Owns: where a slot's step lies, and how stretches, ticks and the axis are drawn. Must not know: what stands around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from batchviz.export.pen import CARD, FAINT, INKS, PAPER, REQUESTS, SOFT, TRACK, WARN, Pen, mix
from batchviz.timeline import Span, Timeline, letter
from batchviz.trace import SlotPhase, TraceStatus

TICKS_H = 9
AXIS_H = 17
AXIS_EVERY = 78  # logical pixels between two labels, at least
STALLED_SHARE = 0.35  # of a request's colour, as in the player
MIN_LETTER_ROW = 9
MIN_SEAT_ROW = 7  # below it there is no room to say who sits there


def row_height(num_slots: int) -> int:
    """Logical pixels of a slot's row."""
    return next((height for most, height in ((4, 26), (8, 18), (16, 11), (32, 7)) if num_slots <= most), 4)


@dataclass(frozen=True, slots=True)
class MapPlace:
    """Where a map lies: the corner of slot 0's row, the width that `num_columns` steps share, the height of a row."""

    left: float
    top: float
    width: float
    row: int
    num_columns: int

    def x(self, step: int) -> float:
        """The left edge of a step's column."""
        return self.left + self.width * step / self.num_columns

    def cell(self, slot: int, step: int) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of a slot during a step."""
        top = self.top + slot * self.row
        return self.x(step), top, self.x(step + 1), top + self.row - (1 if self.row > 3 else 0)


def draw_map(pen: Pen, place: MapPlace, timeline: Timeline, order: dict[str, int]) -> None:
    """The run to its end; what has not happened yet is faded later, by whoever knows the step."""
    trace = timeline.trace
    bottom = place.top + trace.num_slots * place.row
    for slot in range(trace.num_slots):
        _, top, _, low = place.cell(slot, 0)
        pen.box(place.left, top, place.x(timeline.num_steps), low, TRACK)
    for span in timeline.spans:
        _draw_span(pen, place, span, order[span.request_id])
    for long in timeline.long_steps:
        pen.box(place.x(long.step), bottom, max(place.x(long.step + 1), place.x(long.step) + 3), bottom + 3, WARN)
    for event in trace.events():
        colour = REQUESTS[order[event.request_id] % len(REQUESTS)]
        if event.kind == "admitted":
            pen.triangle(place.x(event.step), place.top - 8, 3, 6, colour)
        elif event.kind == "finished":
            at = place.x(event.step + 1)
            pen.box(at - 2, place.top - 8, at, place.top - 2, colour)
    _draw_axis(pen, place, bottom)
    _draw_end(pen, place, timeline)


def _draw_span(pen: Pen, place: MapPlace, span: Span, request: int) -> None:
    left, top, _, bottom = place.cell(span.slot, span.first)
    right = place.x(span.last + 1)
    if span.phase is SlotPhase.HELD:
        pen.hatch(left, top, right, bottom)
        return
    colour = REQUESTS[request % len(REQUESTS)]
    if span.phase is SlotPhase.STALLED:
        colour = mix(colour, STALLED_SHARE, CARD)
    pen.box(left, top, right, bottom, colour)
    if span.phase is SlotPhase.PREFILL and place.row > 3:
        pen.box(left, top, left + 1, bottom, PAPER)
    letters, size = letter(request), min(11, place.row - 2)
    if place.row >= MIN_LETTER_ROW and span.phase is SlotPhase.DECODE and right - left > 9 + 7 * len(letters):
        ink = INKS[request % len(INKS)]
        pen.text(left + 4, (top + bottom) / 2, letters, size, ink, anchor="lm", bold=True)


def _draw_axis(pen: Pen, place: MapPlace, bottom: float) -> None:
    rough = place.num_columns * AXIS_EVERY / place.width
    power = 1
    while power * 10 <= rough:
        power *= 10
    every = next(size for size in (power, 2 * power, 5 * power, 10 * power) if size >= rough)
    for step in range(0, place.num_columns + 1, every):
        words = str(step) if step else "step 0"
        at = place.x(step)
        pen.box(at, bottom, at + 1, bottom + 3, FAINT)
        if at + 3 + pen.width(words, 10) <= place.left + place.width:
            pen.text(at + (3 if step else 0), bottom + 13, words, 10, FAINT)


def _draw_end(pen: Pen, place: MapPlace, timeline: Timeline) -> None:
    """What became of a run that is shorter than the others, where there is room."""
    status = timeline.trace.status
    words = f"done: {timeline.num_steps} steps" if status is TraceStatus.COMPLETE else str(status)
    at = place.x(timeline.num_steps) + 8
    if at + pen.width(words, 11) <= place.left + place.width:
        pen.text(at, place.top + timeline.trace.num_slots * place.row / 2, words, 11, SOFT, anchor="lm")
