"""Attention over a packed step: every sequence looks only at its own slot's keys and values.

Owns: the products, and the function transformers calls in each layer. Must not know: requests, logits, policies.
This is Orca's selective batching (Yu et al., OSDI 2022): all tokens share the linear layers, none share attention.
`orca.py` says the same in the plainest way, a loop over sequences; tests hold the two together.

All of it is written so that a token's result is the same bits whoever sits in the other slots:
- decoding slots go through one batched product over a common window, a multiple of 64 positions; prompts one by one;
- a product never has fewer than 4 rows (fewer take another kernel), so a token gives the same bits read or sampled;
- in float32 the sum over the window is taken in blocks of 128 positions, one after the other, because BLAS libraries
  cut a long sum at places that depend on its length (seen on AVX2 from 193 on; bfloat16 kept its bits without).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface

from batchviz.model.attention_plan import AttentionPlan, DecodePlan, PromptPlan

NAME = "batchviz_slots"
MIN_ROWS = 4
SUM_BLOCK = 128  # positions


def attend(
    plan: AttentionPlan, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> torch.Tensor:
    """Stores the step's keys and values, then attends. query [rows, heads, head_dim], scaled; key and value
    [rows, kv_heads, head_dim]. Returns what was found, [rows, heads, head_dim]; dummy rows are zero.
    """
    plan.cache.write(layer, plan.cache_rows, key[: plan.num_rows], value[: plan.num_rows])
    keys, values = plan.cache.keys[layer], plan.cache.values[layer]
    if plan.decode is not None and plan.decode.num_rows == len(query):
        return _attend_decoding(plan.decode, query, keys, values)
    found = torch.zeros_like(query, memory_format=torch.contiguous_format)
    if plan.decode is not None:
        rows = slice(plan.decode.num_rows)
        found[rows] = _attend_decoding(plan.decode, query[rows], keys, values)
    for prompt in plan.prompts:
        rows = slice(prompt.first_row, prompt.last_row)
        found[rows] = _attend_prompt(prompt, query[rows], keys, values)
    return found


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

    Returns [1, rows, heads, head_dim]. Raises ValueError where a model asks for something that is not built in.
    """
    if attention_plan is None:
        raise ValueError("slot attention was called without a plan of the step")
    if kwargs.get("softcap") is not None or kwargs.get("s_aux") is not None:
        raise ValueError("attention with a soft cap or with sinks is not built in")
    layer: int = module.layer_idx  # type: ignore[assignment]
    scaled = query[0].transpose(0, 1) * (query.shape[3] ** -0.5 if scaling is None else scaling)
    return attend(attention_plan, layer, scaled, key[0].transpose(0, 1), value[0].transpose(0, 1))[None], None


def register() -> None:
    """Makes `slot_attention` known to transformers under NAME. Doing it again changes nothing."""
    AttentionInterface.register(NAME, slot_attention)


def _attend_decoding(decode: DecodePlan, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """One token of each decoding slot, [slots, heads, head_dim]; keys and values are the layer's."""
    num_kv_heads, head_dim = keys.shape[1], keys.shape[3]
    if decode.row_of_slot is not None:
        query = query.index_select(0, decode.row_of_slot)
    slots = slice(decode.first_slot, decode.last_slot)
    grouped = query.reshape(len(query), num_kv_heads, -1, head_dim)
    found = _products(grouped, keys[slots, :, : decode.window], values[slots, :, : decode.window], decode.mask)
    found = found.reshape(len(query), -1, head_dim)
    return found if decode.slot_of_row is None else found.index_select(0, decode.slot_of_row)


def _attend_prompt(prompt: PromptPlan, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A piece of a prompt, [rows, heads, head_dim]; keys and values are the layer's."""
    num_kv_heads, head_dim = keys.shape[1], keys.shape[3]
    num_rows, num_heads = query.shape[:2]
    grouped = query.transpose(0, 1).reshape(1, num_kv_heads, -1, head_dim)  # heads of a group one after the other
    own = slice(prompt.slot, prompt.slot + 1)
    mask = prompt.mask.repeat(num_heads // num_kv_heads, 1)
    found = _products(grouped, keys[own, :, : prompt.window], values[own, :, : prompt.window], mask)
    return found.reshape(num_heads, num_rows, head_dim).transpose(0, 1)


def _products(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
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
    weights, values = weights.flatten(0, 1), values.flatten(0, 1)
    found = torch.bmm(weights[:, :, :SUM_BLOCK], values[:, :SUM_BLOCK])
    for start in range(SUM_BLOCK, keys.shape[2], SUM_BLOCK):
        block = slice(start, start + SUM_BLOCK)
        found.baddbmm_(weights[:, :, block], values[:, block])
    return found.view(query.shape)[:, :, :num_rows]
