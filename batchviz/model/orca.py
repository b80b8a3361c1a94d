"""Selective batching in its plainest form: a loop over sequences, each with exactly its own keys and values.

Owns: the reference that `attention.py` is tested against, and that is shown to whoever asks how it works.
Must not know: windows, masks of a batch, the cache's blank rows. It reads a plan for where each sequence's rows are.
Orca (Yu et al., OSDI 2022), section 3.2: whatever does not care whose token it is runs on all of them; attention does.
"""

from __future__ import annotations

import torch

from batchviz.model.attention_plan import AttentionPlan


def attend_one_by_one(
    plan: AttentionPlan, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> torch.Tensor:
    """As `attention.attend`: query [rows, heads, head_dim], scaled; key, value [rows, kv_heads, head_dim]."""
    plan.cache.write(layer, plan.cache_rows, key[: plan.num_rows], value[: plan.num_rows])
    found = torch.zeros_like(query)
    for piece in plan.pieces:
        rows = slice(piece.first_row, piece.first_row + piece.num_rows)
        length = piece.start + piece.num_rows
        own_keys = plan.cache.keys[layer, piece.slot, :, :length]
        own_values = plan.cache.values[layer, piece.slot, :, :length]
        found[rows] = attend_alone(query[rows], own_keys, own_values, piece.start)
    return found


def attend_alone(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, start: int) -> torch.Tensor:
    """One sequence's new tokens, which sit at positions start, start + 1, ...; each looks at itself and what came before.

    query [tokens, heads, head_dim]; keys and values [kv_heads, length, head_dim]. Returns [tokens, heads, head_dim].
    """
    group = query.shape[1] // len(keys)
    positions = torch.arange(start, start + len(query), device=query.device)
    visible = torch.arange(keys.shape[1], device=query.device) <= positions[:, None]
    heads = []
    for head in range(query.shape[1]):
        scores = query[:, head] @ keys[head // group].T
        weights = torch.softmax(scores.masked_fill(~visible, float("-inf")).float(), dim=-1).to(query.dtype)
        heads.append(weights @ values[head // group])
    return torch.stack(heads, dim=1)
