"""One step's batch and cache as a drawing: rectangles and words at places, for whoever can draw rectangles.

Owns: the geometry of the four pictures. Must not know: colours (a shape has a class), SVG, pages.
A picture is {width, height, words, shapes: [[x, y, width, height, class, title], ...], texts: [[x, y, class, text], ...]}.
A class is `c` and a request's colour, `pad` (nothing), `bare` (reserved and unused) or `frame`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from batchviz.batch_picture import Block, attention_mask, blocks, padding
from batchviz.ledger import Facts
from batchviz.playback import NUM_COLOURS
from batchviz.timeline import letter
from batchviz.trace import SlotPhase, Trace

WIDTH = 460.0
LINE = 22.0
LEFT = 26.0
KINDS = ("batch", "mask", "padding", "kv")
Shape = list[Any]


class Drawing(NamedTuple):
    """What is drawn so far."""

    shapes: list[Shape]
    texts: list[Shape]

    def box(self, x: float, y: float, width: float, height: float, kind: str, title: str) -> None:
        self.shapes.append([round(x, 1), round(y, 1), round(width, 1), round(height, 1), kind, title])

    def word(self, x: float, y: float, kind: str, text: str) -> None:
        self.texts.append([round(x, 1), round(y, 1), kind, text])


def picture(kind: str, trace: Trace, facts: Facts) -> dict[str, Any]:
    """One of KINDS, of one step of one run."""
    drawing = Drawing([], [])
    places = {request.id: place for place, request in enumerate(trace.scenario.requests)}
    draw = {"batch": _batch, "mask": _mask, "padding": _padding, "kv": _kv}[kind]
    height, words = draw(drawing, trace, facts, places)
    return {"width": WIDTH, "height": height, "words": words, **drawing._asdict()}


def _colour(place: int) -> str:
    return f"c{place % NUM_COLOURS}"


def _packed(facts: Facts) -> list[Block]:
    """In the order in which the runner packs them: whoever writes, then whoever reads."""
    return sorted(blocks(facts), key=lambda block: block.phase is SlotPhase.PREFILL)


def _batch(drawing: Drawing, trace: Trace, facts: Facts, places: dict[str, int]) -> tuple[float, str]:
    """All rows, one after the other, through one block."""
    packed = _packed(facts)
    num_rows = sum(block.rows for block in packed)
    row = min(WIDTH / max(num_rows, 1), 60.0)
    x, y = (WIDTH - row * num_rows) / 2, 20.0
    drawing.word(0, 12, "title", "rows of this step")
    for block in packed:
        place = places[block.request_id]
        for number in range(block.rows):
            title = f"{letter(place)}, row {number + 1} of {block.rows}"
            drawing.box(x + row * number, y, row - min(2, row / 4), 30, _colour(place), title)
        drawing.word(x + row * block.rows / 2, y + 44, "letter", letter(place))
        x += row * block.rows
    drawing.box(0, 76, WIDTH, 34, "frame", "every linear layer")
    drawing.word(WIDTH / 2, 98, "middle", f"every linear layer: one multiplication for all {num_rows:,} rows")
    return 116, f"{num_rows} rows of {len(packed)} requests go through every linear layer together."


def _mask(drawing: Drawing, trace: Trace, facts: Facts, places: dict[str, int]) -> tuple[float, str]:
    """A line a row, a column a key."""
    counted = padding(facts)
    visible = attention_mask(trace, facts)
    width = WIDTH - LEFT
    key, row = width / max(counted.keys, 1), min(240 / max(counted.rows, 1), 14.0)
    bottom = 18 + row * counted.rows
    drawing.box(LEFT, 18, width, row * counted.rows, "frame", "attention")
    drawing.word(LEFT, bottom + 15, "title", f"{counted.keys:,} tokens that might be looked at")
    seen: set[str] = set()
    for one in visible:
        place = places[one.request_id]
        title = f"{letter(place)}, row {one.row}: looks at {one.end - one.start} tokens"
        drawing.box(LEFT + key * one.start, 18 + row * one.row, key * (one.end - one.start), row, _colour(place), title)
        if one.request_id not in seen:
            seen.add(one.request_id)
            last = max(other.end for other in visible if other.request_id == one.request_id)
            drawing.word(LEFT + key * (one.start + last) / 2, 12, "letter", letter(place))
    words = f"Attention mask of {counted.rows} rows over {counted.keys} keys: {counted.num_sequences} blocks that do not touch."
    return bottom + 20, words


def _padding(drawing: Drawing, trace: Trace, facts: Facts, places: dict[str, int]) -> tuple[float, str]:
    """The same batch as a rectangle."""
    packed, counted = _packed(facts), padding(facts)
    longest = max((block.rows for block in packed), default=0)
    row = min((WIDTH - LEFT) / max(longest, 1), 40.0)
    pads = counted.padded_rows - counted.rows
    drawing.word(LEFT, 12, "title", f"padded: {counted.padded_rows:,} rows, {pads:,} of them empty")
    for number, block in enumerate(packed):
        place, y = places[block.request_id], 20 + LINE * number
        drawing.word(LEFT - 12, y + 14, "letter", letter(place))
        for column in range(longest):
            is_real = column < block.rows
            title = f"{letter(place)}: {'a token' if is_real else 'padding'}"
            kind = _colour(place) if is_real else "pad"
            drawing.box(LEFT + row * column, y, row - min(2, row / 4), LINE - 5, kind, title)
    return 24 + LINE * len(packed), f"Padded to the longest, {counted.rows} rows become {counted.padded_rows}."


def _kv(drawing: Drawing, trace: Trace, facts: Facts, places: dict[str, int]) -> tuple[float, str]:
    """A bar a slot: used, reserved and bare."""
    needs = {request.id: request.num_reserved_tokens for request in trace.scenario.requests}
    longest = max(needs.values(), default=1)
    position = (WIDTH - LEFT) / longest
    reserved = sum(needs[slot.request_id] for slot in facts.snapshot.slots if slot.request_id)
    used = sum(facts.kv_used)
    drawing.word(LEFT, 12, "title", f"KV cache: {used:,} tokens used, {reserved - used:,} reserved and bare")
    for number, slot in enumerate(facts.snapshot.slots):
        y = 20 + LINE * number
        drawing.box(LEFT, y, WIDTH - LEFT, LINE - 5, "frame", f"slot {number}")
        if slot.request_id is None:
            continue
        place, need = places[slot.request_id], needs[slot.request_id]
        drawing.word(LEFT - 12, y + 14, "letter", letter(place))
        drawing.box(LEFT, y, position * need, LINE - 5, "bare", f"{letter(place)} has reserved {need:,} tokens")
        title = f"{letter(place)} uses {facts.kv_used[number]:,} tokens"
        drawing.box(LEFT, y, position * facts.kv_used[number], LINE - 5, _colour(place), title)
    return 24 + LINE * len(facts.snapshot.slots), f"{used} KV tokens are used, {reserved - used} reserved and bare."
