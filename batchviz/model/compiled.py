"""The same operations on a processor, in float32: compiled loops, shared among threads where that is worth it.

Owns: what torch's tensors are to the loops, and how rows are shared out. Must not know: weights, layers, requests.
Small things are done by one thread: waking another takes longer than the norm of thirty rows.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from batchviz.model import kernels
from batchviz.model.arithmetic import Attend, Heads, Norm
from batchviz.model.attention_plan import AttentionPlan

POSITIONS_A_THREAD = 8_192  # half a millisecond and more; less is slower shared than done


class CompiledTurn(NamedTuple):
    """cos and sin are [rows, head_dim]."""

    cos: Any
    sin: Any
    num_heads: int
    num_kv_heads: int
    scaling: Any


class CompiledArithmetic:
    """An Arithmetic for models whose activation is SiLU. Numbers are float32, on a processor."""

    def __init__(self, num_threads: int) -> None:
        self.attend: Attend = self._attend
        self._num_threads = num_threads
        self._pool = ThreadPoolExecutor(num_threads - 1, "batchviz-attend") if num_threads > 1 else None

    def turn(
        self, cos: torch.Tensor, sin: torch.Tensor, num_heads: int, num_kv_heads: int, scaling: float
    ) -> CompiledTurn:
        if cos.shape != sin.shape or cos.shape[-1] % 2 or num_heads % num_kv_heads:
            raise RuntimeError(
                f"{num_heads} heads over {num_kv_heads} KV heads, turned by tables {tuple(cos.shape)} and {tuple(sin.shape)}"
            )
        return CompiledTurn(cos[0].numpy(), sin[0].numpy(), num_heads, num_kv_heads, np.float32(scaling))

    def make_norm(self, norm: Any) -> Norm:
        weight, epsilon = norm.weight.detach().clone().numpy(), np.float32(norm.variance_epsilon)

        def normed(rows: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(rows)
            kernels.rms_norm(rows[0].numpy(), weight, epsilon, out[0].numpy())
            return out

        return normed

    def rotate(self, heads: torch.Tensor, turn: CompiledTurn) -> Heads:
        """All three are laid out anew, each without a gap: loops over gaps are not vectors."""
        num_rows, num_all, head_dim = heads.shape
        if (num_all, (num_rows, head_dim)) != (turn.num_heads + 2 * turn.num_kv_heads, turn.cos.shape):
            raise RuntimeError(f"heads {tuple(heads.shape)} are not turned by tables {turn.cos.shape}")
        query = heads.new_empty(num_rows, turn.num_heads, head_dim)
        key = heads.new_empty(num_rows, turn.num_kv_heads, head_dim)
        value = torch.empty_like(key)
        kernels.rotate(heads.numpy(), turn.cos, turn.sin, turn.scaling, query.numpy(), key.numpy(), value.numpy())
        return Heads(query, key, value)

    def gate(self, both: torch.Tensor) -> torch.Tensor:
        out = both.new_empty(1, both.shape[1], both.shape[2] // 2)
        kernels.gate(both[0].numpy(), out[0].numpy())
        return out

    def _attend(
        self, plan: AttentionPlan, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> torch.Tensor:
        """See attention.attend. Rows that belong to nobody are zero. Raises RuntimeError for a cache of another shape.

        The loops look at no bounds: that a slot holds what is fed to it is the cache's to say, when a step is packed.
        """
        slots, positions = plan.row_slots, plan.row_positions
        keys, values = plan.cache.keys[layer].numpy(), plan.cache.values[layer].numpy()
        if key.shape != value.shape or (*key.shape[1:], query.shape[2]) != (
            keys.shape[1],
            keys.shape[3],
            keys.shape[3],
        ):
            raise RuntimeError(f"keys {tuple(key.shape)} do not fit into a cache {keys.shape}")
        kernels.store(keys, values, slots, positions, key.numpy(), value.numpy())
        out = torch.empty_like(query)
        out[plan.num_rows :] = 0
        given = (query.numpy(), keys, values, slots, positions, out.numpy())
        self._shared(lambda first, last: kernels.attend(*given, first, last), positions, plan.num_positions)
        return out

    def _shared(self, work: Callable[[int, int], None], positions: Any, total: int) -> None:
        """Does rows 0 to the end, each thread about as many positions as the others."""
        parts = min(self._num_threads, total // POSITIONS_A_THREAD)
        if parts < 2 or self._pool is None:
            work(0, len(positions))
            return
        shares = np.arange(1, parts) * (total / parts)
        cuts = [0, *np.searchsorted(np.cumsum(positions), shares).tolist(), len(positions)]
        others = [self._pool.submit(work, first, last) for first, last in pairwise(cuts[1:])]
        work(cuts[0], cuts[1])
        for other in others:
            other.result()
