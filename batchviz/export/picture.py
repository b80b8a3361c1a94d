"""Runs at one step as a picture: panes side by side, who sits where, the map of the whole run, the counts.

Owns: Picture, and where things stand on it. Must not know: file formats, pages. What never changes is drawn once, so
that an animation only draws what moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PIL import Image

from batchviz.export.origin import origin_lines
from batchviz.export.pen import (
    CARD,
    FAINT,
    GOOD,
    HELD_LINE,
    HELD_PAPER,
    LINE,
    PAPER,
    SOFT,
    TEXT,
    TRACK,
    WARN,
    WARN_TEXT,
    Pen,
    mix,
)  # fmt: skip
from batchviz.export.picture_map import AXIS_H, MIN_SEAT_ROW, TICKS_H, MapPlace, draw_map, row_height
from batchviz.export.scene import Scene, Story
from batchviz.link import MAX_PANES
from batchviz.playback import SUBTITLES
from batchviz.scenario import MAX_SLOTS
from batchviz.timeline import letter, pane_labels, read_timeline, request_order, shorten
from batchviz.trace import RunnerKind, SlotPhase, Trace

WIDTH = 960  # logical pixels
MARGIN = 20
GAP = 14
PAD = 14
PANES_TOP = 76  # under a sentence of one line
LINE_H = 18
SMOOTH = 2  # drawn so many times larger, then made smaller: round corners and even letters
HEAD_H = 84  # of a pane, down to the ticks above its map
SEATS_W = 42  # slot number and badge, left of the map
BADGE = 17
FOOT_H = 112  # of a pane, below its axis
FADED = 0.66  # of what is yet to come, as in the player


class PictureError(ValueError):
    """Runs that make no picture. The message is one sentence."""


class Picture:
    """The picture of these runs of one scenario at any step: `frame(step)`. Raises PictureError."""

    def __init__(self, traces: Sequence[Trace], scale: int = 1) -> None:
        _check(traces)
        timelines = [read_timeline(trace) for trace in traces]
        self._order = {request_id: index for index, request_id in enumerate(request_order(timelines))}
        self._stories = [Story(timeline, self._order) for timeline in timelines]
        self.num_steps = max(story.num_steps for story in self._stories)
        self.scale = scale * SMOOTH
        self._look_for = Pen(Image.new("RGB", (1, 1)), self.scale).wrapped(
            shorten(traces[0].scenario.look_for, 400), 13, WIDTH - 2 * MARGIN, 2
        )
        self._top = PANES_TOP + LINE_H * (len(self._look_for) - 1)
        row = row_height(max(trace.num_slots for trace in traces))
        self._width = (WIDTH - 2 * MARGIN - GAP * (len(traces) - 1)) / len(traces)
        self._lefts = [MARGIN + pane * (self._width + GAP) for pane in range(len(traces))]
        map_top = self._top + HEAD_H + TICKS_H
        self.maps = [
            MapPlace(left + PAD + SEATS_W, map_top, self._width - 2 * PAD - SEATS_W, row, self.num_steps)
            for left in self._lefts
        ]
        self._foot = map_top + row * max(trace.num_slots for trace in traces) + AXIS_H
        self._bottom = self._foot + FOOT_H
        origins = origin_lines(traces)[:MAX_PANES]
        height = round(self._bottom + 36 + 15 * len(origins))
        self._base = Image.new("RGB", (WIDTH * self.scale, height * self.scale), PAPER)
        self._draw_base(Pen(self._base, self.scale), traces, origins)
        self._faded = Image.blend(self._base, Image.new("RGB", self._base.size, CARD), FADED)

    def frame(self, step: int) -> Image.Image:
        """A new image. A step beyond a run's end shows its end."""
        image = self._base.copy()
        pen = Pen(image, self.scale)
        last = self.num_steps - 1
        at = f"step {step:,}"
        room = pen.text(WIDTH - MARGIN, 38, f" of 0-{last:,}", 13, FAINT, anchor="rs")
        pen.text(WIDTH - MARGIN - room, 38, at, 19, TEXT, anchor="rs", bold=True)
        for story, place, left in zip(self._stories, self.maps, self._lefts, strict=True):
            scene = story.at(step)
            self._draw_cursor(pen, place, story, step)
            self._draw_seats(pen, place, story, scene)
            self._draw_head(pen, left, scene)
            self._draw_foot(pen, left, story, scene)
        return image.reduce(SMOOTH)

    def _draw_base(self, pen: Pen, traces: Sequence[Trace], origins: Sequence[str]) -> None:
        scenario = traces[0].scenario
        room = WIDTH - 2 * MARGIN
        pen.text(MARGIN, 38, pen.fitted(shorten(scenario.title, 200), 22, room - 180), 22, TEXT, bold=True)
        for number, line in enumerate(self._look_for):
            pen.text(MARGIN, 61 + LINE_H * number, line, 13, SOFT)
        for story, place, left, label in zip(self._stories, self.maps, self._lefts, pane_labels(traces), strict=True):
            trace = story.timeline.trace
            pen.rounded(left, self._top, left + self._width, self._bottom, 10, CARD, LINE)
            name, comma, settings = label.partition(",")
            heading = label if trace.config.policy_class else f"{name} batching{comma}{settings}"
            inner = self._width - 2 * PAD
            pen.text(left + PAD, self._top + 27, pen.fitted(heading, 17, inner - 84), 17, TEXT, bold=True)
            slots = f"{trace.num_slots} slot{'' if trace.num_slots == 1 else 's'}"
            words = f"{slots} · {SUBTITLES[trace.config.policy]}"
            pen.text(left + PAD, self._top + 45, words if pen.width(words, 12) < inner - 128 else slots, 12, SOFT)
            draw_map(pen, place, story.timeline, self._order)
            for slot in range(trace.num_slots):
                if place.row >= 11:
                    middle = place.top + (slot + 0.5) * place.row
                    pen.text(left + PAD + 11, middle, str(slot), 10, FAINT, anchor="rm")
        self._draw_legend(pen, self._bottom + 22)
        for number, line in enumerate(origins):
            pen.text(MARGIN, self._bottom + 42 + 15 * number, pen.fitted(line, 11, room), 11, FAINT)

    def _draw_legend(self, pen: Pen, baseline: float) -> None:
        x = float(MARGIN)
        for kind in ("working", "held", "empty"):
            _draw_key(pen, x, baseline - 10, kind)
            x += 17 + pen.text(x + 16, baseline, kind, 12, SOFT) + 14
        pen.triangle(x + 4, baseline - 8, 3, 6, SOFT)
        x += 12 + pen.text(x + 12, baseline, "admitted", 12, SOFT) + 14
        pen.box(x + 3, baseline - 9, x + 5, baseline - 2, SOFT)
        x += 10 + pen.text(x + 10, baseline, "finished", 12, SOFT) + 14
        if any(story.timeline.long_steps for story in self._stories):
            pen.box(x, baseline - 5, x + 10, baseline - 2, WARN)
            pen.text(x + 15, baseline, "a step that took unusually long", 12, SOFT)
        pen.text(WIDTH - MARGIN, baseline, "drawn by batchviz", 12, FAINT, anchor="rs")

    def _draw_cursor(self, pen: Pen, place: MapPlace, story: Story, step: int) -> None:
        """Fades what is yet to come, and marks where we are: behind the step's own column."""
        bottom = place.top + story.timeline.trace.num_slots * place.row
        at = place.x(min(step, self.num_steps - 1) + 1)
        left, top, right, low = (round(v * self.scale) for v in (at, place.top, place.x(story.num_steps), bottom))
        if right > left:
            pen.image.paste(self._faded.crop((left, top, right, low)), (left, top))
        pen.box(at - 1, place.top - TICKS_H, at + 1, bottom + 3, TEXT)

    def _draw_seats(self, pen: Pen, place: MapPlace, story: Story, scene: Scene) -> None:
        size = min(BADGE, place.row - 2)
        if place.row < MIN_SEAT_ROW:
            return
        for slot in range(story.timeline.trace.num_slots):
            seat = scene.seats[slot] if slot < len(scene.seats) and not scene.is_over else None
            left = place.left - 6 - size
            top = place.top + slot * place.row + (place.row - 1 - size) / 2
            if seat is None or seat.request is None:
                pen.rounded(left, top, left + size, top + size, min(5, size / 4), CARD, LINE)
            else:
                pen.badge(left, top, size, letter(seat.request), seat.request, held=seat.phase is SlotPhase.HELD)

    def _draw_head(self, pen: Pen, left: float, scene: Scene) -> None:
        """How many have their answer; who waits."""
        right = left + self._width - PAD
        words = pen.text(right, self._top + 28, f" of {len(self._order)}", 13, SOFT, anchor="rs")
        pen.text(right - words, self._top + 28, str(len(scene.delivered)), 27, TEXT, anchor="rs", bold=True)
        if scene.withheld:
            words = pen.text(
                right, self._top + 45, f"{len(scene.withheld)} withheld", 12, WARN_TEXT, anchor="rs", bold=True
            )
            pen.text(right - words - 4, self._top + 45, "delivered,", 12, SOFT, anchor="rs")
        else:
            pen.text(right, self._top + 45, "delivered", 12, SOFT, anchor="rs")
        self._draw_row(pen, left, self._top + 55, "queue", scene.waiting, "nobody waits")

    def _draw_foot(self, pen: Pen, left: float, story: Story, scene: Scene) -> None:
        """Who has an answer, who is kept from one; slot-steps so far; tokens and seconds."""
        top = self._foot + 8
        self._draw_row(pen, left, top, "delivered", scene.delivered, "nobody yet")
        self._draw_row(pen, left, top + 22, "withheld", scene.withheld, "nobody")
        inner = self._width - 2 * PAD
        x, bar, total = left + PAD, top + 52, max(1, scene.working + scene.held + scene.stalled + scene.empty)
        pen.box(x, bar, x + inner, bar + 6, TRACK)
        for kind, count in (("working", scene.working), ("held", scene.held), ("stalled", scene.stalled)):
            wide = inner * count / total
            if kind == "held" and count:
                pen.hatch(x, bar, x + wide, bar + 6)
            elif count:
                pen.box(x, bar, x + wide, bar + 6, GOOD if kind == "working" else mix(WARN, 0.55, CARD))
            x += wide
        kinds = [("working", scene.working), ("held", scene.held), ("empty", scene.empty)]
        kinds += [("stalled", scene.stalled)] if any(s.phase is SlotPhase.STALLED for s in story.timeline.spans) else []
        x = left + PAD
        for kind, count in kinds:
            _draw_key(pen, x, bar + 13, kind)
            x += 15
            x += pen.text(x, bar + 23, f"{count:,}", 12, TEXT, bold=True)
            x += pen.text(x, bar + 23, f" {kind}", 12, SOFT) + 11
        if x + pen.width("slot-steps, counted", 11) <= left + PAD + inner:
            pen.text(x, bar + 23, "slot-steps, counted", 11, FAINT)
        trace, x = story.timeline.trace, left + PAD
        made_by = {RunnerKind.MODEL: "from the model", RunnerKind.SCRIPTED: "no model"}.get(
            trace.origin.runner, "recorded"
        )
        for number, words in (
            (f"{scene.tokens:,}", f" tokens, {made_by}"),
            (f"{scene.seconds:.2f} s", f" {trace.origin.seconds}"),
        ):
            x += pen.text(x, bar + 41, number, 12, TEXT, bold=True)
            x += pen.text(x, bar + 41, words, 11, FAINT) + 14

    def _draw_row(self, pen: Pen, left: float, top: float, label: str, requests: Iterable[int], nobody: str) -> None:
        """A word and the badges of these requests, as many as fit; then how many more there are."""
        shown, x, right = list(requests), left + PAD + 64, left + self._width - PAD
        is_warning = label == "withheld" and bool(shown)
        middle = top + BADGE / 2
        pen.text(left + PAD, middle, label, 12, WARN_TEXT if is_warning else FAINT, anchor="lm")
        if not shown:
            pen.text(x, middle, nobody, 12, FAINT, anchor="lm")
        fitting = int((right - x + 3) // (BADGE + 3))
        if len(shown) > fitting:
            fitting -= 2
        for request in shown[:fitting]:
            pen.badge(x, top, BADGE, letter(request), request)
            x += BADGE + 3
        if len(shown) > fitting:
            pen.text(x + 2, middle, f"+{len(shown) - fitting}", 12, SOFT, anchor="lm")


def _draw_key(pen: Pen, left: float, top: float, kind: str) -> None:
    """The little square that stands for a kind of slot-step."""
    if kind == "working":
        pen.rounded(left, top, left + 11, top + 11, 3, GOOD)
    elif kind == "held":
        pen.rounded(left, top, left + 11, top + 11, 2, HELD_PAPER, HELD_LINE)
        pen.hatch(left + 1, top + 1, left + 10, top + 10)
    elif kind == "stalled":
        pen.rounded(left, top, left + 11, top + 11, 3, mix(WARN, 0.55, CARD))
    else:
        pen.rounded(left, top, left + 11, top + 11, 3, CARD, FAINT)


def _check(traces: Sequence[Trace]) -> None:
    if not traces or not all(trace.steps for trace in traces):
        raise PictureError("a run without a single step has nothing to draw")
    if len(traces) > MAX_PANES:
        raise PictureError(f"there are {len(traces)} runs; a picture has room for {MAX_PANES}")
    if max(trace.num_slots for trace in traces) > MAX_SLOTS:
        raise PictureError(f"a run has more than {MAX_SLOTS} slots; a picture has room for no more")
