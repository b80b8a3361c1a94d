"""Attention for all slots at once finds what a loop over sequences finds: Orca's own form, the reference."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.model.attention import attend
from batchviz.model.compiled import CompiledArithmetic
from batchviz.model.kv_cache import KVCache
from batchviz.model.linear import PackedLinear
from batchviz.model.orca import attend_alone, attend_one_by_one
from batchviz.model.runner import TorchRunner
from batchviz.scheduler import ScheduledSequence
from tests.model.tiny import work

pytestmark = pytest.mark.model

HEADS, KV_HEADS, HEAD_DIM, NUM_SLOTS = 6, 2, 8, 5
COMPILED = (CompiledArithmetic(1).attend, CompiledArithmetic(3).attend)


def full_cache(dtype: torch.dtype) -> KVCache:
    """As it is in mid-run: every row written, with numbers that a mistake would show."""
    cache = KVCache(
        num_layers=1,
        num_slots=NUM_SLOTS,
        num_heads=KV_HEADS,
        capacity=400,
        head_dim=HEAD_DIM,
        dtype=dtype,
        device=torch.device("cpu"),
    )
    torch.manual_seed(3)
    cache.keys.normal_()
    cache.values.normal_()
    return cache


@st.composite
def steps(draw: st.DrawFn) -> tuple[ScheduledSequence, ...]:
    """Any slots, each decoding or reading a piece of its prompt, anywhere."""
    slots = draw(st.lists(st.integers(0, NUM_SLOTS - 1), min_size=1, max_size=NUM_SLOTS, unique=True).map(sorted))
    works = []
    for slot in slots:
        start = draw(st.integers(0, 300))
        reads = start == 0 or draw(st.booleans())
        length = draw(st.integers(1, 90)) if reads else 1
        works.append(work(slot, (1,) * length, start, prefill=reads))
    return tuple(works)


@settings(max_examples=60, deadline=None)
@given(works=steps(), seed=st.integers(0, 100))
def test_all_at_once_is_one_by_one(works: tuple[ScheduledSequence, ...], seed: int) -> None:
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 3e-2)):
        found = []
        for form in (attend_one_by_one, attend, *(COMPILED if dtype == torch.float32 else ())):
            cache = full_cache(dtype)
            step = TorchRunner(_NoNetwork(), cache, float).pack(works)
            torch.manual_seed(seed)
            rows = step.token_ids.shape[1]
            query = torch.randn(rows, HEADS, HEAD_DIM).to(dtype)
            key, value = (torch.randn(rows, KV_HEADS, HEAD_DIM).to(dtype) for _ in range(2))
            found.append(form(step.attention, 0, query, key, value)[: step.attention.num_rows].clone())
            assert cache.keys[0, works[0].slot, 0, works[0].start_position].equal(
                key[_row_of(step.attention, works[0].slot), 0]
            )
        for other in found[1:]:
            torch.testing.assert_close(other, found[0], rtol=tolerance, atol=tolerance)
        if dtype == torch.float32:
            assert torch.equal(found[2], found[3])  # however many threads share the rows


def test_a_cache_of_another_shape_is_refused_by_loops_that_look_at_no_bounds() -> None:
    cache = full_cache(torch.float32)
    step = TorchRunner(_NoNetwork(), cache, float).pack((work(0, (1, 1, 1), 0, prefill=True),))
    query, key = torch.zeros(3, HEADS, HEAD_DIM), torch.zeros(3, KV_HEADS, HEAD_DIM)
    for wrong in (torch.zeros(3, KV_HEADS + 1, HEAD_DIM), torch.zeros(3, KV_HEADS, HEAD_DIM - 1)):
        for pair in ((wrong, wrong), (key, wrong)):
            with pytest.raises(RuntimeError, match="do not fit into a cache"):
                COMPILED[0](step.attention, 0, query, *pair)


def test_one_sequence_alone_is_torchs_own_attention() -> None:
    torch.manual_seed(4)
    query, keys, values = (
        torch.randn(7, HEADS, HEAD_DIM),
        torch.randn(KV_HEADS, 20, HEAD_DIM),
        torch.randn(KV_HEADS, 20, HEAD_DIM),
    )
    mask = torch.arange(20) <= torch.arange(13, 20)[:, None]
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys[None], values[None], attn_mask=mask, scale=1.0, enable_gqa=True
    )
    torch.testing.assert_close(attend_alone(query, keys, values, 13), expected[0].transpose(0, 1))


def _row_of(plan: Any, slot: int) -> int:
    return next(piece.first_row for piece in plan.pieces if piece.slot == slot)


class _NoNetwork:
    rows_for = staticmethod(PackedLinear.rows_for)

    def __call__(self, *_: Any) -> torch.Tensor:
        raise AssertionError("attention alone is asked for")
