"""What a step is run through: tokens in, logits out.

Owns: the shape of that call, and any causal language model of transformers behind it. Must not know: slots, requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import nn

from batchviz.model.attention_plan import AttentionPlan


class Network(Protocol):
    """A language model over a packed step."""

    def __call__(
        self, token_ids: torch.Tensor, positions: torch.Tensor, sampled_rows: torch.Tensor, plan: AttentionPlan
    ) -> torch.Tensor:
        """token_ids and positions [1, rows]; sampled_rows [samples]. Returns logits, [samples, vocab]."""
        ...

    def rows_for(self, num_rows: int) -> int:
        """How many rows a step must be run with so that the bits of these are their own; the others are dummies."""
        ...


class TransformersNetwork(nn.Module):
    """A model of transformers, run by its own code; it must have been made to attend by `attention.NAME`."""

    def __init__(self, model: Any, rows_for: Callable[[int], int]) -> None:
        super().__init__()
        self.model = model
        self.rows_for = rows_for

    def forward(
        self, token_ids: torch.Tensor, positions: torch.Tensor, sampled_rows: torch.Tensor, plan: AttentionPlan
    ) -> torch.Tensor:
        """See Network."""
        output = self.model(
            input_ids=token_ids,
            position_ids=positions,
            use_cache=False,
            logits_to_keep=sampled_rows,
            attention_plan=plan,
        )
        logits: torch.Tensor = output.logits[0]
        return logits
