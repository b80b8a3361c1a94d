"""A step that took long is found, told with what was read in it, and a prompt read in pieces is followed."""

from __future__ import annotations

import statistics

from batchviz.narrate import narration
from batchviz.pace import ENOUGH_STEPS, LONG, long_steps
from batchviz.playback import playback
from batchviz.prefill import PrefillMode
from batchviz.recordings import load_recording, rescheduled
from batchviz.runs import make_config
from batchviz.scheduler import Policy
from batchviz.timeline import read_timeline
from tests.story import story

EXCLUSIVE = make_config(Policy.CONTINUOUS, 4, prefill=PrefillMode.EXCLUSIVE)
CHUNKED = make_config(Policy.CONTINUOUS, 4, prefill=PrefillMode.CHUNKED, max_batched_tokens=64)


def test_the_page_of_text_is_read_in_one_long_step_when_it_is_read_alone() -> None:
    exclusive = rescheduled(load_recording("long-prompt"), EXCLUSIVE)
    assert exclusive.origin.seconds == "measured"
    (slow,) = long_steps(exclusive)
    assert (slow.step, slow.num_prompt_tokens) == (12, 613)
    working = [step.duration_s for step in exclusive.steps if step.num_rows]
    assert slow.times_usual == slow.duration_s / statistics.median(working) > 10
    sentence = next(told for told in narration([read_timeline(exclusive)]).panes[0] if told.step == 12)
    assert f"This step took {slow.duration_s:.2f} s" in sentence.text
    assert "613 prompt tokens were read in it" in sentence.text
    assert sentence.weight >= 2


def test_in_pieces_no_step_is_long_and_each_piece_is_counted() -> None:
    chunked = rescheduled(load_recording("long-prompt"), CHUNKED)
    assert long_steps(chunked) == ()
    payload = playback([chunked])
    report = payload["requests"]["id"].index("report")
    steps, read = next((steps, read) for request, steps, read in payload["panes"][0]["reading"] if request == report)
    assert steps == sorted(set(steps))
    assert read == sorted(set(read))
    assert read[-1] == 613
    assert all(later - earlier <= 64 for earlier, later in zip([0, *read], read, strict=False))


def test_without_a_usual_step_none_is_long() -> None:
    few = story(max_steps=ENOUGH_STEPS - 1)[0]
    assert long_steps(few) == ()
    assert all(slow.times_usual >= LONG for trace in story() for slow in long_steps(trace))
