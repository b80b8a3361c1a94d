"""Pictures and animations: what is on them is what the trace holds, and they stay small."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from PIL import Image, ImageColor

from batchviz.colours import REQUEST_COLOURS
from batchviz.export.images import MAX_FRAMES, frame_steps, to_gif, to_png
from batchviz.export.pen import sayable
from batchviz.export.picture import Picture, PictureError
from batchviz.export.scene import Story
from batchviz.recordings import load_recording
from batchviz.scheduler import Policy
from batchviz.timeline import read_timeline, request_order
from batchviz.trace import SlotPhase, Trace
from tests.hostile import hostile_traces
from tests.story import make_trace, story

COLOURS = [ImageColor.getrgb(colour) for colour in REQUEST_COLOURS]
WORKING = (SlotPhase.PREFILL, SlotPhase.DECODE)


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def check_cells(image: Image.Image, traces: list[Trace], scale: int, step: int) -> int:
    """Near its end each stretch that is wide enough has its request's colour, or, held, none; returns how many were."""
    picture = Picture(traces)
    pixels = image.convert("RGB")
    timelines = [read_timeline(trace) for trace in traces]
    order = {request_id: index for index, request_id in enumerate(request_order(timelines))}
    seen = 0
    for timeline, place in zip(timelines, picture.maps, strict=True):
        for span in timeline.spans:
            left, top, _, bottom = place.cell(span.slot, span.first)
            right = place.x(span.last + 1)
            if right - left < 8 or span.last > step or span.phase is SlotPhase.STALLED:
                continue
            found = pixels.getpixel((round((right - 3) * scale), round((top + bottom) / 2 * scale)))
            if span.phase in WORKING:
                assert found == COLOURS[order[span.request_id] % len(COLOURS)], span
            else:
                assert found not in COLOURS, span
            seen += 1
    return seen


@pytest.mark.parametrize("name", ["four-slots", "sixteen-chats", "golden-lengths"])
def test_a_slot_s_cell_has_its_request_s_colour(name: str) -> None:
    traces = list(load_recording(name))
    last = max(len(trace.steps) for trace in traces) - 1
    assert check_cells(opened(to_png(traces, last)), traces, 2, last) > 12


def test_every_slot_step_of_a_small_run_is_in_its_place() -> None:
    traces = story(lengths=(4, 9, 5), num_slots=2)
    image = opened(to_png(traces, 13)).convert("RGB")
    for trace, place in zip(traces, Picture(traces).maps, strict=True):
        ids = [request.id for request in trace.scenario.requests]
        for snapshot in trace.steps:
            for number, slot in enumerate(snapshot.slots):
                _, top, right, bottom = place.cell(number, snapshot.step)
                found = image.getpixel((round((right - 4) * 2), round(top + bottom)))
                if slot.phase in WORKING and slot.request_id is not None:
                    assert found == COLOURS[ids.index(slot.request_id)], (snapshot.step, number)
                else:
                    assert found not in COLOURS, (snapshot.step, number)


def test_a_picture_is_wide_sharp_and_not_blank() -> None:
    image = opened(to_png(load_recording("four-slots"), 34))
    assert image.width == 1920
    assert 700 < image.height < 1300
    assert len(image.convert("RGB").getcolors(1 << 24) or []) > 200


def test_every_step_looks_different() -> None:
    traces = story(lengths=(4, 9, 5), num_slots=2)
    picture = Picture(traces)
    frames = [picture.frame(step).tobytes() for step in range(picture.num_steps)]
    assert len(set(frames)) == len(frames) == 14


def test_what_is_yet_to_come_is_faded() -> None:
    traces = story()
    picture = Picture(traces)
    place = picture.maps[0]
    left, top, right, bottom = place.cell(1, 150)  # “rome”, which sits there for 200 steps
    at = (round((left + right) / 2), round((top + bottom) / 2))
    assert picture.frame(200).getpixel(at) == COLOURS[1]
    assert picture.frame(20).getpixel(at) != COLOURS[1]


def test_the_animation_shows_every_step_of_a_short_run_and_begins_anew() -> None:
    traces = story(lengths=(4, 9, 5), num_slots=2)
    image = opened(to_gif(traces))
    assert image.n_frames == max(len(trace.steps) for trace in traces)
    assert image.info["loop"] == 0
    assert image.width == 960
    shown = set()
    for frame in range(image.n_frames):
        image.seek(frame)
        shown.add(image.convert("RGB").tobytes())
    assert len(shown) == image.n_frames


def test_the_largest_preset_s_animation_is_bounded_and_keeps_the_colours() -> None:
    traces = list(load_recording("sixteen-chats"))
    data = to_gif(traces)
    assert len(data) < 2_000_000
    image = opened(data)
    assert image.n_frames == MAX_FRAMES
    for frame, step in ((60, frame_steps(360)[60]), (MAX_FRAMES - 1, 359)):
        image.seek(frame)
        assert check_cells(image, traces, 1, step) > 5


def test_a_long_run_on_many_slots_is_bounded_too() -> None:
    trace = make_trace(Policy.CONTINUOUS, 64, [20 + 37 * i % 300 for i in range(300)])
    data = to_gif([trace])
    assert len(data) < 2_000_000
    assert opened(data).n_frames == MAX_FRAMES


@pytest.mark.parametrize("num_steps", [1, 2, 119, 120, 121, 5000])
def test_frames_begin_at_the_first_step_end_at_the_last_and_never_repeat(num_steps: int) -> None:
    steps = frame_steps(num_steps)
    assert steps[0] == 0
    assert steps[-1] == num_steps - 1
    assert len(set(steps)) == len(steps) == min(num_steps, MAX_FRAMES)
    gaps = {b - a for a, b in pairwise(steps)}
    assert max(gaps, default=1) - min(gaps, default=1) <= 1


@pytest.mark.parametrize("name", ["long-prompt", "golden-lengths", "burst-and-trickle"])
def test_a_scene_counts_what_the_trace_holds(name: str) -> None:
    traces = load_recording(name)
    timelines = [read_timeline(trace) for trace in traces]
    ids = request_order(timelines)
    order = {request_id: index for index, request_id in enumerate(ids)}
    for trace, timeline in zip(traces, timelines, strict=True):
        told = Story(timeline, order)
        for step in range(0, len(trace.steps), 7):
            scene = told.at(step)
            passed = trace.steps[: step + 1]
            phases = [slot.phase for snapshot in passed for slot in snapshot.slots]
            assert scene.working == sum(phase in WORKING for phase in phases)
            assert (scene.held, scene.stalled, scene.empty) == tuple(
                phases.count(phase) for phase in (SlotPhase.HELD, SlotPhase.STALLED, SlotPhase.EMPTY)
            )
            assert [ids[index] for index in scene.waiting] == [request_id for request_id, _ in trace.waiting(step)]
            delivered = [request_id for snapshot in passed for request_id in snapshot.delivered]
            assert {ids[index] for index in scene.delivered} == set(delivered)
            finished = {finish.request_id for snapshot in passed for finish in snapshot.finished}
            assert {ids[index] for index in scene.withheld} == finished - set(delivered)


def test_a_run_that_is_over_is_said_to_be_over() -> None:
    timeline = read_timeline(story()[1])
    told = Story(timeline, {request_id: index for index, request_id in enumerate(timeline.lives)})
    assert not told.at(199).is_over
    assert told.at(200).is_over
    assert told.at(200).step == 199


def test_hostile_and_foreign_texts_are_drawn() -> None:
    assert opened(to_png(hostile_traces(), 3)).width == 1920
    assert sayable("naïve – 3 × 中\u202e\n") == "naive - 3 x ?? "


def test_what_cannot_be_drawn_is_refused_in_a_sentence() -> None:
    with pytest.raises(PictureError, match="without a single step"):
        Picture(story(max_steps=0))
    with pytest.raises(PictureError, match="room for 3"):
        Picture(story() * 2)
    with pytest.raises(PictureError, match="64 slots"):
        Picture([make_trace(Policy.CONTINUOUS, 65)])
