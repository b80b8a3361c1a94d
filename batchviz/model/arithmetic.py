"""What a forward pass computes besides products with weights: norm, rotation, gating, attention. In torch, for any device.

Owns: the shape of these operations, and torch's form of them. Must not know: weights, layers, requests.
`compiled.py` has the same for processors, faster; tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn
from torch.nn import functional

from batchviz.model.attention import attend
from batchviz.model.attention_plan import AttentionPlan
from batchviz.model.elementwise import RowwiseActivation

Attend = Callable[[AttentionPlan, int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""`attention.attend`, or another function of that shape."""
Norm = Callable[[torch.Tensor], torch.Tensor]
"""[1, rows, width] -> the same."""


class Heads(NamedTuple):
    """[rows, heads, head_dim], and with kv_heads the other two."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor


class Arithmetic(Protocol):
    """Every operation gives a row the same bits whatever rows stand beside it."""

    attend: Attend

    def turn(self, cos: torch.Tensor, sin: torch.Tensor, num_heads: int, num_kv_heads: int, scaling: float) -> Any:
        """What `rotate` needs, once for all layers, from a rotary embedding's tables, [1, rows, head_dim] each."""
        ...

    def make_norm(self, norm: Any) -> Norm:
        """Root mean square normalisation (Zhang and Sennrich, 2019) with the weight and epsilon of a model's own."""
        ...

    def rotate(self, heads: torch.Tensor, turn: Any) -> Heads:
        """Rotary embedding (Su et al., 2021) of queries and keys, and scaling of queries.

        heads [rows, heads + 2 * kv_heads, head_dim]: queries, keys and values, side by side.
        """
        ...

    def gate(self, both: torch.Tensor) -> torch.Tensor:
        """The activation of the first half, times the second half, [1, rows, 2 * width] -> [1, rows, width]."""
        ...


class TorchTurn(NamedTuple):
    """cos and sin are [1, rows, (heads + kv_heads) * head_dim]."""

    cos: torch.Tensor
    sin: torch.Tensor
    num_heads: int
    num_kv_heads: int


class TorchArithmetic:
    """The operations as torch has them."""

    def __init__(self, activation: nn.Module) -> None:
        self.attend: Attend = attend
        self._activation = RowwiseActivation(activation)

    def turn(
        self, cos: torch.Tensor, sin: torch.Tensor, num_heads: int, num_kv_heads: int, scaling: float
    ) -> TorchTurn:
        """Queries' and keys' tables side by side, [1, rows, (heads + kv_heads) * head_dim]; rotate_half's sign is in them."""
        half = sin.shape[-1] // 2
        sin = torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)

        def for_all_heads(table: torch.Tensor) -> torch.Tensor:
            queries = (table * scaling).repeat(1, 1, num_heads)
            return torch.cat((queries, table.repeat(1, 1, num_kv_heads)), dim=-1)

        return TorchTurn(for_all_heads(cos), for_all_heads(sin), num_heads, num_kv_heads)

    def make_norm(self, norm: Any) -> Norm:
        weight, epsilon = norm.weight.detach().clone(), norm.variance_epsilon
        return lambda rows: functional.rms_norm(rows, weight.shape, weight, epsilon)

    def rotate(self, heads: torch.Tensor, turn: TorchTurn) -> Heads:
        turning, value = torch.split(heads, [turn.num_heads + turn.num_kv_heads, turn.num_kv_heads], dim=1)
        first, second = turning.chunk(2, dim=-1)
        swapped = torch.cat((second, first), dim=-1)
        turned = torch.addcmul(turning * turn.cos.view_as(turning), swapped, turn.sin.view_as(turning))
        return Heads(turned[:, : turn.num_heads], turned[:, turn.num_heads :], value)

    def gate(self, both: torch.Tensor) -> torch.Tensor:
        first, second = both.chunk(2, dim=-1)
        activated: torch.Tensor = self._activation(first)
        return activated * second
