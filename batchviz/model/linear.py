"""Linear layers whose rows do not depend on how many rows there are.

Owns: packing a weight for oneDNN, layers that read one input put together, packed layers in the place of a model's own.
Must not know: slots, attention.

oneDNN can lay a weight out once in the blocks its kernels want. On a CPU that is about twice as fast as doing it at
each call, and, tried for 2 to 720 rows, a row's result is the same bits whatever rows stand beside it. The operations
are those that torch's own compiler emits; they are internal, so they are looked for and tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

ROWS_HINT = MappingProxyType(
    {torch.float32: 8, torch.bfloat16: 1}
)  # for how many rows oneDNN should choose its blocks: measured

LACKING = (AttributeError, NotImplementedError, RuntimeError)  # what torch raises where it has no such operation


class SideBySide(nn.Module):
    """x -> x W^T + b (+ residual), [1, rows, in] -> [1, rows, out].

    Several layers of one input become one, their outputs side by side.
    """

    weight_bytes: int  # that a step reads

    def __init__(self, *linears: nn.Linear) -> None:
        super().__init__()
        self.in_features = linears[0].in_features
        self.out_features = sum(linear.out_features for linear in linears)

    @staticmethod
    def rows_for(num_rows: int) -> int:
        """How many rows a step must have so that the bits of these are their own: one alone takes another kernel."""
        return max(num_rows, 2)


class PackedLinear(SideBySide):
    """The weight is kept in oneDNN's own layout alone."""

    def __init__(self, *linears: nn.Linear) -> None:
        super().__init__(*linears)
        weight, self._bias = joined(linears)
        self._weight = _pack(weight)
        self.weight_bytes = weight.nbytes

    def forward(self, rows: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        if rows.shape[-2] == 0:
            return rows.new_empty((*rows.shape[:-1], self.out_features))
        return _apply(rows, self._weight, self._bias, residual)


class JoinedLinear(SideBySide):
    """Where weights cannot be packed: plain torch."""

    def __init__(self, *linears: nn.Linear) -> None:
        super().__init__(*linears)
        self._weight, self._bias = joined(linears)
        self.weight_bytes = self._weight.nbytes

    def forward(self, rows: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        result = functional.linear(rows, self._weight, self._bias)
        return result if residual is None else result.add_(residual)


def joined(linears: Sequence[nn.Linear]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The weights of layers that read the same input, one under the other, [sum of out, in], and their biases."""
    weights = [linear.weight.detach() for linear in linears]
    biases = [
        linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
        for linear in linears
    ]
    has_bias = any(linear.bias is not None for linear in linears)
    weight = weights[0] if len(weights) == 1 else torch.cat(weights)
    return weight, torch.cat(biases) if has_bias else None


def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether this machine packs weights of this kind, found by trying with a small one."""
    if device.type != "cpu" or dtype not in ROWS_HINT:
        return False
    try:
        weight = torch.linspace(-1, 1, 64 * 32).reshape(64, 32).to(dtype)
        rows = torch.linspace(1, -1, 3 * 32).reshape(1, 3, 32).to(dtype)
        residual = torch.linspace(-2, 2, 3 * 64).reshape(1, 3, 64).to(dtype)
        plain = functional.linear(rows, weight)
        return all(
            torch.allclose(_apply(rows, _pack(weight), None, added).float(), expected.float(), atol=0.1)
            for added, expected in ((None, plain), (residual, plain + residual))
        )
    except LACKING:
        return False


def replace_linears(model: nn.Module, make_linear: Callable[[nn.Linear], nn.Module]) -> None:
    """Replaces every nn.Linear of the model by what is made of it, in place."""
    places = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear
    ]
    for parent, name, child in places:
        setattr(parent, name, make_linear(child))


def _pack(weight: torch.Tensor) -> Any:
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS_HINT[weight.dtype])


def _apply(
    rows: torch.Tensor, weight: Any, bias: torch.Tensor | None, residual: torch.Tensor | None = None
) -> torch.Tensor:
    result: torch.Tensor
    if residual is None:
        result = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    else:
        result = torch.ops.mkldnn._linear_pointwise.binary(rows, residual, weight, bias, "add")
    return result
