"""The keys and values of every slot, in memory that is taken once.

Owns: where a slot's rows lie, and that no stale row is ever read. Must not know: requests, tokens, attention.

Slot-major: `keys[layer, slot, head, position]`. A slot belongs to one sequence at a time, and its rows are used again
by the next one. A batched attention looks at a window that is longer than most sequences; the mask gives the rest of
the window the weight 0, but 0 times a stale NaN is NaN. So rows inside a window that nobody has written are zero, always.
"""

from __future__ import annotations

import torch

WINDOW = 64  # windows are multiples of this many positions; sums over such windows do not depend on their length


def round_up(num_positions: int) -> int:
    """The window, in positions, that holds so many."""
    return -(-num_positions // WINDOW) * WINDOW


class KVCache:
    """Keys and values, each [num_layers, num_slots, num_heads, capacity, head_dim]; `capacity` is rounded up to 64."""

    def __init__(
        self,
        *,
        num_layers: int,
        num_slots: int,
        num_heads: int,
        capacity: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.num_slots = num_slots
        self.capacity = round_up(capacity)
        shape = (num_layers, num_slots, num_heads, self.capacity, head_dim)
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self._num_clean = [0] * num_slots  # of each slot: rows before this one are the occupant's own, or zero

    @property
    def num_bytes(self) -> int:
        return 2 * self.keys.numel() * self.keys.element_size()

    def prepare(self, slot: int, start: int, end: int, window: int) -> None:
        """Makes a window of a slot safe to read, before its rows start..end are written in this step.

        A sequence that starts at 0 is new here: nothing that lies in the slot counts any more. Raises IndexError for
        what the cache does not hold; whoever computes afterwards need not look again.
        """
        if not (0 <= slot < self.num_slots and 0 <= start <= end <= window <= self.capacity):
            raise IndexError(
                f"positions {start} to {end} of slot {slot}; there are {self.num_slots} slots of {self.capacity}"
            )
        clean = 0 if start == 0 else self._num_clean[slot]
        first = max(clean, end)
        if first < window:
            self.keys[:, slot, :, first:window].zero_()
            self.values[:, slot, :, first:window].zero_()
        self._num_clean[slot] = max(clean, window)

    def row_indices(self, slots: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Where `write` puts tokens at positions of slots, [num_tokens] each -> [num_tokens * num_heads]."""
        num_heads = self.keys.shape[2]
        heads = torch.arange(num_heads, device=slots.device)
        return ((slots[:, None] * num_heads + heads) * self.capacity + positions[:, None]).reshape(-1)

    def write(self, layer: int, rows: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
        """Stores one layer's keys and values, [num_tokens, num_heads, head_dim] each, at `row_indices`."""
        head_dim = key.shape[-1]
        self.keys[layer].view(-1, head_dim).index_copy_(0, rows, key.reshape(-1, head_dim))
        self.values[layer].view(-1, head_dim).index_copy_(0, rows, value.reshape(-1, head_dim))
