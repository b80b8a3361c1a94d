"""Activations whose results do not depend on how many rows there are.

Owns: wrapping a model's activations and its rotary tables. Must not know: slots, attention, linear layers.

Torch computes exp, sin and cos on a CPU in vectors, and what is left over at the end one by one, with another formula: the
last bit may differ. What is left over depends on the tensor's size and on how it is cut for the threads. So rows are made
a whole number of vectors long, and go through in blocks too small to be cut.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

BLOCK = 32_768  # elements: torch does not divide a smaller tensor among threads
VECTOR = 32  # elements: two vectors of the widest kind
ACTIVATION_MODULES = ("transformers.activations", "torch.nn.modules.activation")


class RowwiseActivation(nn.Module):
    """An activation, [..., rows, width] -> the same, in blocks of rows."""

    def __init__(self, activation: nn.Module) -> None:
        super().__init__()
        self._activation = activation

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        width = rows.shape[-1]
        if width % VECTOR:
            rows = functional.pad(rows, (0, VECTOR - width % VECTOR))
        if rows.numel() <= BLOCK:
            activated: torch.Tensor = self._activation(rows)
        else:
            blocks = torch.split(rows, max(BLOCK // rows.shape[-1], 1), dim=-2)
            activated = torch.cat([self._activation(block) for block in blocks], dim=-2)
        return activated[..., :width]


class RowwiseRotary(nn.Module):
    """A rotary embedding, positions [1, rows] -> cos and sin [1, rows, width], in blocks of rows."""

    def __init__(self, rotary: nn.Module, head_dim: int) -> None:
        super().__init__()
        self._rotary = rotary
        self._num_rows = max(BLOCK // head_dim, 1)

    def forward(self, hidden: torch.Tensor, position_ids: torch.Tensor, **kwargs: Any) -> Any:
        if position_ids.shape[-1] <= self._num_rows:
            return self._rotary(hidden, position_ids=position_ids, **kwargs)
        blocks = torch.split(position_ids, self._num_rows, dim=-1)
        parts = [self._rotary(hidden, position_ids=block, **kwargs) for block in blocks]
        return tuple(torch.cat(pieces, dim=-2) for pieces in zip(*parts, strict=True))


def make_rowwise(model: nn.Module, head_dim: int) -> None:
    """Wraps every activation and rotary embedding of the model, in place."""
    places = [(parent, name, child) for parent in model.modules() for name, child in parent.named_children()]
    for parent, name, child in places:
        if type(child).__module__ in ACTIVATION_MODULES:
            setattr(parent, name, RowwiseActivation(child))
        elif name == "rotary_emb":
            setattr(parent, name, RowwiseRotary(child, head_dim))
