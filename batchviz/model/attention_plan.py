"""What a packed step needs to attend: who may look at what, worked out once a step and used by every layer.

Owns: the plan of a step's attention, its masks and windows. Must not know: requests, logits, policies, how a product is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from batchviz.model.kv_cache import KVCache, round_up

PROMPT_BLOCK = 256  # positions of a prompt attended at once: bounds the memory for scores


class Piece(NamedTuple):
    """One sequence's share of the packed step: rows from `first_row` on, positions from `start` on."""

    slot: int
    first_row: int
    num_rows: int
    start: int


@dataclass(frozen=True, slots=True, eq=False)
class DecodePlan:
    """All decoding slots at once. They are the first `num_rows` rows of the packed step, in slot order.

    The product runs over the slots from `first_slot` to before `last_slot` without copying their cache; the ones
    between that do not decode compute along and are dropped.
    """

    num_rows: int
    first_slot: int
    last_slot: int
    window: int
    mask: torch.Tensor  # [slots, 1, 1, window]: 0 where a sequence may look, else -inf
    row_of_slot: torch.Tensor | None  # [slots]: which row each slot feeds; None if it is simply the same
    slot_of_row: torch.Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class PromptPlan:
    """A piece of one prompt: rows `first_row` to before `last_row` of the packed step."""

    slot: int
    first_row: int
    last_row: int
    window: int
    mask: torch.Tensor  # [rows, window]


@dataclass(frozen=True, slots=True, eq=False)
class AttentionPlan:
    """What every layer needs to attend in this step. Rows after `num_rows` are dummies and belong to nobody."""

    cache: KVCache
    num_rows: int
    row_slots: Any  # NumPy, [num_rows]: whose each row is
    row_positions: Any  # NumPy, [num_rows]: where in its sequence it sits
    num_positions: int  # that all rows attend to, in all
    cache_rows: torch.Tensor  # where the new keys and values go: KVCache.row_indices
    pieces: tuple[Piece, ...]  # in the order of their rows
    decode: DecodePlan | None
    prompts: tuple[PromptPlan, ...]


def plan_decode(slots: list[int], positions: list[int], device: torch.device, dtype: torch.dtype) -> DecodePlan | None:
    """Plans one token for each of these slots (ascending), which sits at this position of its sequence."""
    if not slots:
        return None
    first_slot, last_slot = slots[0], slots[-1] + 1
    window = round_up(max(positions) + 1)
    last_visible = [0] * (last_slot - first_slot)
    row_of_slot = [0] * (last_slot - first_slot)
    for row, (slot, position) in enumerate(zip(slots, positions, strict=True)):
        last_visible[slot - first_slot], row_of_slot[slot - first_slot] = position, row
    visible = torch.arange(window, device=device) <= torch.tensor(last_visible, device=device)[:, None]
    gapless = last_slot - first_slot == len(slots)
    return DecodePlan(
        num_rows=len(slots),
        first_slot=first_slot,
        last_slot=last_slot,
        window=window,
        mask=_mask(visible, dtype)[:, None, None, :],
        row_of_slot=None if gapless else torch.tensor(row_of_slot, device=device),
        slot_of_row=None if gapless else torch.tensor([slot - first_slot for slot in slots], device=device),
    )


def plan_prompt(
    slot: int, first_row: int, start: int, length: int, device: torch.device, dtype: torch.dtype
) -> list[PromptPlan]:
    """Plans `length` prompt tokens that sit at positions start, start + 1, ... and at rows from `first_row` on."""
    plans = []
    for offset in range(0, length, PROMPT_BLOCK):
        num_rows = min(PROMPT_BLOCK, length - offset)
        positions = torch.arange(start + offset, start + offset + num_rows, device=device)
        window = round_up(start + offset + num_rows)
        visible = torch.arange(window, device=device) <= positions[:, None]
        row = first_row + offset
        plans.append(PromptPlan(slot, row, row + num_rows, window, _mask(visible, dtype)))
    return plans


def _mask(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, float("-inf"))
