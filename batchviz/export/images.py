"""Traces as image files: one step as a PNG, the run as an animated GIF.

Owns: both formats, how steps are chosen for frames, how colours are kept exact. Must not know: what is drawn.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence

from PIL import Image

from batchviz.export.picture import Picture
from batchviz.trace import Trace

PNG_SCALE = 2
MAX_FRAMES = 120
FRAME_MS = 100  # of a long run; a short one is shown more slowly
SLOWEST_MS = 250
RUN_MS = 9_000  # what a short run is stretched to, at most
LAST_MS = 2_500  # the end, before it begins anew


def to_png(traces: Sequence[Trace], step: int) -> bytes:
    """The picture of a step, 1,920 pixels wide."""
    out = io.BytesIO()
    Picture(traces, PNG_SCALE).frame(step).save(out, "PNG", optimize=True)
    return out.getvalue()


def to_gif(traces: Sequence[Trace]) -> bytes:
    """The whole run, 960 pixels wide, over and over: every step, or MAX_FRAMES of them at equal distances."""
    picture = Picture(traces)
    steps = frame_steps(picture.num_steps)
    palette = _palette([picture.frame(steps[place]) for place in (0, len(steps) // 2, -1)])
    frames = [picture.frame(step).quantize(palette=palette, dither=Image.Dither.NONE) for step in steps]
    each = min(SLOWEST_MS, max(FRAME_MS, RUN_MS // len(frames) // 10 * 10))
    out = io.BytesIO()
    frames[0].save(
        out,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[*[each] * (len(frames) - 1), LAST_MS],
        loop=0,
        optimize=True,  # what did not change is see-through: an eighth of the size
    )
    return out.getvalue()


def frame_steps(num_steps: int) -> list[int]:
    """The steps that are shown: the first, the last, and others at equal distances between them.

    >>> frame_steps(3), frame_steps(1000)[:3], frame_steps(1000)[-1], len(frame_steps(1000))
    ([0, 1, 2], [0, 8, 17], 999, 120)
    """
    count = min(num_steps, MAX_FRAMES)
    return [round(frame * (num_steps - 1) / max(1, count - 1)) for frame in range(count)]


def _palette(frames: Sequence[Image.Image]) -> Image.Image:
    """The 255 most frequent colours of these frames, each as it is: a request keeps its colour to the last bit."""
    found: Counter[tuple[int, int, int]] = Counter()
    for frame in frames:
        for number, colour in frame.getcolors(frame.width * frame.height) or []:
            assert isinstance(colour, tuple)
            found[colour[0], colour[1], colour[2]] += number
    palette = Image.new("P", (1, 1))
    palette.putpalette([level for colour, _ in found.most_common(255) for level in colour])
    return palette
