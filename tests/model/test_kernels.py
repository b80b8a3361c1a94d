"""The compiled loops: right values, NaN goes through, and a row's bits are its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numba import float32, njit
from torch.nn import functional

from batchviz.model import kernels

pytestmark = pytest.mark.model


@njit(**kernels.SETTINGS)  # kept nowhere: it would outlive a change of `exp`
def exp_of_all(numbers: Any, out: Any) -> None:
    for i in range(len(numbers)):
        out[i] = kernels.exp(numbers[i])


def exp(*numbers: float) -> Any:
    given = np.array(numbers, np.float32)
    out = np.empty_like(given)
    exp_of_all(given, out)
    return out


@pytest.mark.parametrize("error", [RuntimeError("no locator available"), OSError(28, "No space left on device")])
def test_where_nothing_can_be_kept_it_is_compiled_at_each_start(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    plain = kernels.njit

    def without_a_place(signature: Any, **settings: Any) -> Any:
        if settings.get("cache"):
            raise error
        return plain(signature, **settings)

    monkeypatch.setattr(kernels, "njit", without_a_place)

    @kernels.compiled(float32, gives=float32)
    def double(number: Any) -> Any:
        return number + number

    assert double(21.0) == 42.0


def test_arrays_with_gaps_are_refused() -> None:
    both, out = np.ones((3, 8), np.float32), np.empty((3, 2), np.float32)
    with pytest.raises(TypeError, match="No matching definition"):
        kernels.gate(both[:, ::2], out)
    with pytest.raises(TypeError, match="No matching definition"):
        kernels.gate(both.astype(np.float64), out)


def test_exp_is_within_two_units_in_the_last_place() -> None:
    numbers = np.linspace(-87, 87, 200_001).astype(np.float32)
    found = exp(*numbers)
    expected = np.exp(numbers.astype(np.float64))
    assert np.abs(found / expected - 1).max() < 2 * 2.0**-23
    assert exp(0.0)[0] == 1


def test_exp_beyond_what_float32_holds_is_nearly_nothing_or_very_much_and_nan_stays() -> None:
    least, most, nothing = exp(-np.inf, np.inf, np.nan)
    assert 0 < least < 1e-37
    assert 1e37 < most < np.inf
    assert np.isnan(nothing)


@pytest.mark.parametrize("width", [1, 7, 64, 576])
def test_norm_and_gate_are_torchs(width: int) -> None:
    torch.manual_seed(width)
    rows, weight, both = torch.randn(5, width) * 3, torch.randn(width), torch.randn(5, 2 * width) * 20
    normed, gated = torch.empty(5, width), torch.empty(5, width)
    kernels.rms_norm(rows.numpy(), weight.numpy(), np.float32(1e-5), normed.numpy())
    kernels.gate(both.numpy(), gated.numpy())
    torch.testing.assert_close(normed, functional.rms_norm(rows, (width,), weight, 1e-5))
    torch.testing.assert_close(gated, functional.silu(both[:, :width]) * both[:, width:], atol=1e-5, rtol=1e-5)


def test_a_rows_bits_are_its_own() -> None:
    """Alone and in company; and attention, whatever lies in the cache after its own position."""
    torch.manual_seed(7)
    rows, weight, both = torch.randn(40, 576), torch.randn(576), torch.randn(40, 400)
    query, keys, values = torch.randn(40, 6, 16), torch.randn(4, 2, 300, 16), torch.randn(4, 2, 300, 16)
    slots, positions = np.arange(40) % 4, np.arange(40) * 7
    normed, gated, found = (torch.empty(*shape) for shape in ((40, 576), (40, 200), (40, 6, 16)))
    kernels.rms_norm(rows.numpy(), weight.numpy(), np.float32(1e-5), normed.numpy())
    kernels.gate(both.numpy(), gated.numpy())
    kernels.attend(query.numpy(), keys.numpy(), values.numpy(), slots, positions, found.numpy(), 0, 40)
    for row in (0, 1, 13, 39):
        one = slice(row, row + 1)
        alone, alone_gated, alone_found = torch.empty(1, 576), torch.empty(1, 200), torch.empty(1, 6, 16)
        kernels.rms_norm(rows[one].numpy(), weight.numpy(), np.float32(1e-5), alone.numpy())
        kernels.gate(both[one].numpy(), alone_gated.numpy())
        stale = [cache.clone() for cache in (keys, values)]
        for cache in stale:
            cache[:, :, positions[row] + 1 :] = float("nan")
        kernels.attend(
            query[one].numpy(),
            stale[0].numpy(),
            stale[1].numpy(),
            slots[one],
            positions[one],
            alone_found.numpy(),
            0,
            1,
        )
        assert torch.equal(alone[0], normed[row])
        assert torch.equal(alone_gated[0], gated[row])
        assert torch.equal(alone_found[0], found[row])


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_is_seen_at_the_end_and_by_nobody_else(wrong: float) -> None:
    torch.manual_seed(8)
    query, keys, values = torch.randn(2, 6, 16), torch.randn(2, 2, 20, 16), torch.randn(2, 2, 20, 16)
    found = torch.empty(2, 6, 16)
    for spoiled in (keys, values):
        spoiled[0, :, 3] = wrong
        kernels.attend(query.numpy(), keys.numpy(), values.numpy(), np.arange(2), np.full(2, 9), found.numpy(), 0, 2)
        assert not torch.isfinite(found[0]).all(dim=-1).any()
        assert torch.isfinite(found[1]).all()
        spoiled[0, :, 3] = 0
