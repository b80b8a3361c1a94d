"""Linear layers whose rows do not depend on how many rows there are.

Owns: packing a weight for oneDNN, and putting packed layers in the place of a model's own.
Must not know: slots, attention.

oneDNN can lay a weight out once in the blocks its kernels want. On a CPU that is about twice as fast as doing it at
each call, and, tried for 2 to 720 rows, a row's result is the same bits whatever rows stand beside it. The two operations
are those that torch's own compiler emits; they are internal, so they are looked for and tried first.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

ROWS_HINT = MappingProxyType(
    {torch.float32: 8, torch.bfloat16: 1}
)  # for how many rows oneDNN should choose its blocks: measured


class PackedLinear(nn.Module):
    """x -> x W^T + b, [..., in_features] -> [..., out_features]. The weight is kept in oneDNN's own layout alone."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self._weight = _pack(linear.weight.detach())
        self._bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if rows.shape[-2] == 0:
            return rows.new_empty((*rows.shape[:-1], self.out_features))
        return _apply(rows, self._weight, self._bias)


def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether this machine packs weights of this kind, found by trying with a small one."""
    if device.type != "cpu" or dtype not in ROWS_HINT:
        return False
    try:
        weight = torch.linspace(-1, 1, 64 * 32).reshape(64, 32).to(dtype)
        rows = torch.linspace(1, -1, 3 * 32).reshape(1, 3, 32).to(dtype)
        result = _apply(rows, _pack(weight), None)
        return torch.allclose(result.float(), functional.linear(rows, weight).float(), atol=0.1)
    except (AttributeError, NotImplementedError, RuntimeError):
        return False


def pack_linears(model: nn.Module) -> int:
    """Replaces every nn.Linear of the model by a packed one, in place. Returns how many there were."""
    places = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear
    ]
    for parent, name, child in places:
        setattr(parent, name, PackedLinear(child))
    return len(places)


def _pack(weight: torch.Tensor) -> Any:
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS_HINT[weight.dtype])


def _apply(rows: torch.Tensor, weight: Any, bias: torch.Tensor | None) -> torch.Tensor:
    result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return result
