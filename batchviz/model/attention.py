"""Attention over a packed step: every sequence looks only at its own slot's keys and values.

Owns: the plan of a step's attention, and the function transformers calls in each layer.
Must not know: requests, logits, policies.
This is Orca's selective batching (Yu et al., OSDI 2022): all tokens share the linear layers, none share attention.

All of it is written so that a token's result is the same bits whoever sits in the other slots:
- decoding slots go through one batched product over a common window, a multiple of 64 positions; prompts one by one;
- a product never has fewer than 4 rows (fewer take another kernel), so a token gives the same bits read or sampled;
- in float32 the sum over the window is taken in blocks of 64 positions, which are then added in order, because BLAS
  libraries cut a long sum at places that depend on its length (seen on AVX2; bfloat16 kept its bits without).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface

from batchviz.model.kv_cache import WINDOW, KVCache, round_up

NAME = "batchviz_slots"
MIN_ROWS = 4
PROMPT_BLOCK = 256  # positions of a prompt attended at once: bounds the memory for scores


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
    cache_rows: torch.Tensor  # where the new keys and values go: KVCache.row_indices
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


def slot_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    attention_plan: AttentionPlan | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """What transformers calls in each layer. query [1, heads, rows, head_dim]; key and value have kv_heads instead.

    Stores the new keys and values, then attends. Returns [1, rows, heads, head_dim]. Raises ValueError where a model
    asks for something that is not built in.
    """
    if attention_plan is None:
        raise ValueError("slot attention was called without a plan of the step")
    if kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None:
        raise ValueError("attention with a soft cap or with sinks is not built in")
    plan, cache = attention_plan, attention_plan.cache
    layer: int = module.layer_idx  # type: ignore[assignment]
    num_heads, head_dim = query.shape[1], query.shape[3]
    num_kv_heads = key.shape[1]
    query = query[0] * (head_dim**-0.5 if scaling is None else scaling)
    cache.write(layer, plan.cache_rows, key[0, :, : plan.num_rows], value[0, :, : plan.num_rows])
    keys, values = cache.keys[layer], cache.values[layer]
    output = query.new_zeros((query.shape[1], num_heads, head_dim))

    decode = plan.decode
    if decode is not None:
        rows = query[:, : decode.num_rows].transpose(0, 1)  # [rows, heads, head_dim]
        if decode.row_of_slot is not None:
            rows = rows.index_select(0, decode.row_of_slot)
        slots = slice(decode.first_slot, decode.last_slot)
        grouped = rows.reshape(len(rows), num_kv_heads, num_heads // num_kv_heads, head_dim)
        attended = _attend(grouped, keys[slots, :, : decode.window], values[slots, :, : decode.window], decode.mask)
        attended = attended.reshape(len(rows), num_heads, head_dim)
        if decode.slot_of_row is not None:
            attended = attended.index_select(0, decode.slot_of_row)
        output[: decode.num_rows] = attended

    for prompt in plan.prompts:
        num_rows = prompt.last_row - prompt.first_row
        rows = query[:, prompt.first_row : prompt.last_row]  # [heads, rows, head_dim]
        grouped = rows.reshape(1, num_kv_heads, -1, head_dim)  # heads of one group lie one after the other
        own = slice(prompt.slot, prompt.slot + 1)
        mask = prompt.mask.repeat(num_heads // num_kv_heads, 1)
        attended = _attend(grouped, keys[own, :, : prompt.window], values[own, :, : prompt.window], mask)
        output[prompt.first_row : prompt.last_row] = attended.reshape(num_heads, num_rows, head_dim).transpose(0, 1)
    return output[None], None


def register() -> None:
    """Makes `slot_attention` known to transformers under NAME. Doing it again changes nothing."""
    AttentionInterface.register(NAME, slot_attention)


def _attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """query [slots, kv_heads, rows, head_dim], scaled; keys and values [slots, kv_heads, window, head_dim]."""
    num_rows = query.shape[2]
    if num_rows < MIN_ROWS:
        query = functional.pad(query, (0, 0, 0, MIN_ROWS - num_rows))
        if mask.shape[-2] > 1:
            mask = functional.pad(mask, (0, 0, 0, MIN_ROWS - num_rows))
    scores = torch.matmul(query, keys.transpose(2, 3)).add_(mask)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    if query.dtype != torch.float32:
        return torch.matmul(weights, values)[:, :, :num_rows]
    num_blocks = keys.shape[2] // WINDOW
    blocks = weights.reshape(*weights.shape[:3], num_blocks, WINDOW).transpose(2, 3)  # [slots, heads, blocks, rows, 64]
    values = values.view(*values.shape[:2], num_blocks, WINDOW, values.shape[3])
    return torch.matmul(blocks, values).sum(dim=2)[:, :, :num_rows]


def _mask(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, float("-inf"))
