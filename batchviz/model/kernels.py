"""The arithmetic of a step that is no product of matrices, as plain loops, compiled by Numba for this processor.

Owns: the loops. Must not know: torch, requests, layers. Arrays are NumPy's, float32, and views of what torch holds.

Each row is computed from its own data, by the same loop, in an order that depends on its own length alone, so that a
neighbour cannot change a bit: one sees it in the loops, and tests try it. For the same reason they are compiled for arrays
without gaps and for no others: another layout would be other machine code. Sums may be taken in vectors (`reassoc`) and a
product may be added without rounding between (`contract`); nothing is assumed of NaN and infinities, which go through.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
from numba import float32, int64, njit, void

Array = Any  # np.ndarray, of the shape that the docstring says
Loop = TypeVar("Loop", bound=Callable[..., Any])
ROW, ROWS, HEADS, CACHE = float32[::1], float32[:, ::1], float32[:, :, ::1], float32[:, :, :, ::1]  # without gaps
INDICES = int64[::1]
SETTINGS: Mapping[str, Any] = MappingProxyType(
    {"nogil": True, "fastmath": {"reassoc", "contract"}, "error_model": "numpy"}
)

LOG2_E = np.float32(1.44269504088896341)
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
P0, P1, P2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
P3, P4, P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
HALF, ONE, NOTHING, LARGE = np.float32(0.5), np.float32(1), np.float32(0), np.float32(87)


def compiled(*takes: Any, gives: Any = void) -> Callable[[Loop], Loop]:
    """Compiled for these types when this file is read, and kept on disk where that can be; it runs without the interpreter."""

    def compile_it(loop: Loop) -> Loop:
        signature = gives(*takes)
        try:
            return cast(Loop, njit(signature, cache=True, **SETTINGS)(loop))
        except (RuntimeError, OSError):  # nothing can be written beside this file or in the user's cache; a full disk
            return cast(Loop, njit(signature, **SETTINGS)(loop))

    return compile_it


@compiled(float32, gives=float32)
def exp(x: Any) -> Any:
    """e to the x, in float32, within two units in the last place; x beyond 87 either way counts as 87 (Cephes, `expf`)."""
    x = max(x, -LARGE)
    x = min(x, LARGE)
    power = np.floor(x * LOG2_E + HALF)
    rest = x - power * LN2_HIGH - power * LN2_LOW
    series = ((((P0 * rest + P1) * rest + P2) * rest + P3) * rest + P4) * rest + P5
    series = series * (rest * rest) + rest + ONE
    return series * np.int32((np.int32(power) + 127) << 23).view(np.float32)


@compiled(ROWS, ROW, float32, ROWS)
def rms_norm(rows: Array, weight: Array, epsilon: Any, out: Array) -> None:
    """Root mean square normalisation (Zhang and Sennrich, 2019). rows and out [rows, width], weight [width]."""
    width = rows.shape[1]
    for r in range(rows.shape[0]):
        total = NOTHING
        for i in range(width):
            total += rows[r, i] * rows[r, i]
        scale = ONE / np.sqrt(total / np.float32(width) + epsilon)
        for i in range(width):
            out[r, i] = rows[r, i] * scale * weight[i]


@compiled(ROW, ROW, ROW, float32, ROW)
def _turn(head: Array, cos: Array, sin: Array, scaling: Any, out: Array) -> None:
    half = len(head) // 2
    for i in range(half):
        left, right = head[i], head[i + half]
        out[i] = (left * cos[i] - right * sin[i]) * scaling
        out[i + half] = (right * cos[i + half] + left * sin[i + half]) * scaling


@compiled(HEADS, ROWS, ROWS, float32, HEADS, HEADS, HEADS)
def rotate(heads: Array, cos: Array, sin: Array, scaling: Any, query: Array, key: Array, value: Array) -> None:
    """Rotary embedding (Su et al., 2021) of queries and keys, and scaling of queries.

    heads [rows, heads + 2 * kv_heads, dim], queries, keys and values side by side; cos and sin [rows, dim]. Written to
    query [rows, heads, dim], key and value [rows, kv_heads, dim].
    """
    for r in range(heads.shape[0]):
        for h in range(query.shape[1]):
            _turn(heads[r, h], cos[r], sin[r], scaling, query[r, h])
        for h in range(key.shape[1]):
            _turn(heads[r, query.shape[1] + h], cos[r], sin[r], ONE, key[r, h])
            value[r, h] = heads[r, query.shape[1] + key.shape[1] + h]


@compiled(ROWS, ROWS)
def gate(both: Array, out: Array) -> None:
    """SiLU of the first half of each row, times the second half. both [rows, 2 * width], out [rows, width]."""
    width = out.shape[1]
    for r in range(out.shape[0]):
        for i in range(width):
            out[r, i] = both[r, i] / (ONE + exp(-both[r, i])) * both[r, width + i]


@compiled(CACHE, CACHE, INDICES, INDICES, HEADS, HEADS)
def store(keys: Array, values: Array, slots: Array, positions: Array, key: Array, value: Array) -> None:
    """Writes each row to its slot and position. keys and values [slots, heads, capacity, dim], key and value
    [rows, heads, dim].
    """
    for r in range(len(slots)):
        for h in range(key.shape[1]):
            keys[slots[r], h, positions[r]] = key[r, h]
            values[slots[r], h, positions[r]] = value[r, h]


@compiled(ROW, ROWS, ROW, int64)
def _scores(query: Array, keys: Array, scores: Array, length: int) -> None:
    for p in range(length):
        total = NOTHING
        for i in range(len(query)):
            total += query[i] * keys[p, i]
        scores[p] = total


@compiled(ROW, int64, gives=float32)
def _exponentials(scores: Array, length: int) -> Any:
    """Softmax without its division, in place. Returns what is to be divided by."""
    best = scores[0]
    for p in range(1, length):
        best = max(best, scores[p])
    for p in range(length):
        scores[p] = exp(scores[p] - best)
    total = NOTHING
    for p in range(length):
        total += scores[p]
    return total


@compiled(ROW, ROWS, ROW, int64, float32)
def _weigh(weights: Array, values: Array, out: Array, length: int, factor: Any) -> None:
    """The sum of values [positions, dim] by weight, four positions at a time: fewer ways to and from memory."""
    whole = length - length % 4
    out[:] = NOTHING
    for p in range(0, whole, 4):
        first, second, third, fourth = weights[p], weights[p + 1], weights[p + 2], weights[p + 3]
        for i in range(len(out)):
            out[i] += (
                first * values[p, i] + second * values[p + 1, i] + third * values[p + 2, i] + fourth * values[p + 3, i]
            )
    for p in range(whole, length):
        for i in range(len(out)):
            out[i] += weights[p] * values[p, i]
    for i in range(len(out)):
        out[i] *= factor


@compiled(HEADS, CACHE, CACHE, INDICES, INDICES, HEADS, int64, int64)
def attend(
    query: Array, keys: Array, values: Array, slots: Array, positions: Array, out: Array, first: int, last: int
) -> None:
    """Rows `first` to before `last`, each over its slot's positions up to and with its own.

    query and out [rows, heads, dim], scaled; keys and values [slots, kv_heads, capacity, dim]. Several heads share a
    KV head (grouped queries), and are done one after the other, while its keys are still near.
    """
    num_kv_heads = keys.shape[1]
    group = query.shape[1] // num_kv_heads
    scores = np.empty((group, keys.shape[2]), np.float32)
    for h in range(num_kv_heads):
        for r in range(first, last):
            length = positions[r] + 1
            own_keys, own_values = keys[slots[r], h], values[slots[r], h]
            for g in range(group):
                _scores(query[r, h * group + g], own_keys, scores[g], length)
            for g in range(group):
                total = _exponentials(scores[g], length)
                _weigh(scores[g], own_values, out[r, h * group + g], length, ONE / total)
