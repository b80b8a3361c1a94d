"""A step's batch as a picture: who looks at which keys, and what the same batch would be if it were padded.

Owns: `blocks`, `attention_mask` and `padding`, from a trace alone. Must not know: charts, colours, how attention is computed.
"""

from __future__ import annotations

from typing import NamedTuple

from batchviz.explain import packed_rows
from batchviz.ledger import Facts
from batchviz.trace import SlotPhase, Trace


class Visible(NamedTuple):
    """One row of the mask: a token looks at the keys from `start` to before `end` of all keys laid side by side."""

    row: int
    slot: int
    request_id: str
    phase: SlotPhase
    start: int
    end: int


class Padding(NamedTuple):
    """What the step computes, and what it would if every sequence were as long as the longest."""

    num_sequences: int
    rows: int  # fed tokens
    padded_rows: int
    keys: int  # KV positions that are looked at
    padded_keys: int


class Block(NamedTuple):
    """A sequence in the step: `rows` tokens of it are fed, and they look at `keys` KV positions."""

    slot: int
    request_id: str
    phase: SlotPhase
    rows: int
    keys: int


def blocks(facts: Facts) -> list[Block]:
    """The sequences that worked in this step, in slot order."""
    return [
        Block(number, slot.request_id, slot.phase, slot.num_tokens, facts.kv_used[number])
        for number, slot in enumerate(facts.snapshot.slots)
        if slot.num_tokens and slot.request_id is not None
    ]


def attention_mask(trace: Trace, facts: Facts) -> list[Visible]:
    """Every sequence looks at its own keys, none at another's: the mask is blocks on a diagonal."""
    found: list[Visible] = []
    first_key: dict[int, int] = {}
    num_keys = 0
    for row in packed_rows(trace, facts.snapshot.step):
        if row.slot not in first_key:
            first_key[row.slot] = num_keys
            num_keys += facts.kv_used[row.slot]
        start = first_key[row.slot]
        found.append(Visible(row.row, row.slot, row.request_id, row.phase, start, start + row.position + 1))
    return found


def padding(facts: Facts) -> Padding:
    """Counted from the slots that worked in this step."""
    working = blocks(facts)
    longest = max((block.rows for block in working), default=0)
    most_keys = max((block.keys for block in working), default=0)
    return Padding(
        num_sequences=len(working),
        rows=sum(block.rows for block in working),
        padded_rows=len(working) * longest,
        keys=sum(block.keys for block in working),
        padded_keys=len(working) * most_keys,
    )
