"""Linear layers that keep their weights in float16 and calculate in float32.

Owns: such a layer, and whether this machine has it. Must not know: slots, attention, which layers a model has.

A decode step reads every weight once, and at few slots reading them is what takes the time; half the bytes is then twice
the speed. The kernels are FBGEMM's (they come with torch on x86): a weight is made float32 again in a register, products
are added in float32. They have one kernel for each small count of rows (up to six with AVX2), and those for one and two
rows add in another order than the rest. So rows come in a unit found by trying: in multiples of it, a row's bits do not
depend on its company.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import nn

from batchviz.model.linear import LACKING, SideBySide, joined

LARGEST = 65_504.0  # in float16; what is larger would be cut down to it
UNITS = (1, 2, 3, 4, 6, 8)
TRIED_ROWS = 240  # twice the most that the kernels take at once
TRIED_SHAPE = (80, 600)  # out, in: more than one block of either


class HalfLinear(SideBySide):
    """W in float16, the rest in float32. Raises ValueError for weights beyond float16."""

    def __init__(self, *linears: nn.Linear) -> None:
        super().__init__(*linears)
        weight, bias = joined(linears)
        if not fits(weight):
            raise ValueError(f"a weight is larger than float16 can hold ({LARGEST:,.0f}); say --dtype float32")
        self._weight = _pack(weight, bias)
        self.weight_bytes = 2 * self.in_features * self.out_features

    @staticmethod
    def rows_for(num_rows: int) -> int:
        """How many rows a step must have so that the bits of these are their own."""
        unit = row_unit() or 1
        return -(-num_rows // unit) * unit

    def forward(self, rows: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        if rows.shape[-2] == 0:
            return rows.new_empty((*rows.shape[:-1], self.out_features))
        result = _apply(rows, self._weight)
        return result if residual is None else result.add_(residual)


def fits(weight: torch.Tensor) -> bool:
    """Whether float16 holds every number of it. (NaN it does not: what is no number is not kept quietly.)"""
    least, most = weight.detach().aminmax()
    return least.item() >= -LARGEST and most.item() <= LARGEST


@cache
def row_unit() -> int | None:
    """The least of UNITS in whose multiples a row's bits are its own, found by trying. None where there is none."""
    try:
        out_features, in_features = TRIED_SHAPE
        chosen = torch.Generator().manual_seed(0)
        rows = torch.randn(1, TRIED_ROWS, in_features, generator=chosen)
        weight = _pack(torch.randn(out_features, in_features, generator=chosen), None)
        return next((unit for unit in UNITS if _holds(unit, rows, weight)), None)
    except LACKING:
        return None


def _holds(unit: int, rows: torch.Tensor, weight: Any) -> bool:
    expected = torch.cat([_apply(piece, weight) for piece in torch.split(rows, unit, dim=1)], dim=1)
    return all(
        torch.equal(_apply(rows[:, TRIED_ROWS - count :].contiguous(), weight), expected[:, TRIED_ROWS - count :])
        for count in range(unit, TRIED_ROWS + 1, unit)
    )


def _pack(weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
    return torch.ops.quantized.linear_prepack_fp16(weight.contiguous(), bias)


def _apply(rows: torch.Tensor, weight: Any) -> torch.Tensor:
    result: torch.Tensor = torch.ops.quantized.linear_dynamic_fp16(rows, weight)
    return result
