"""How prompts and decoding sequences share a step: how many tokens each seated sequence is fed.

Owns: PrefillMode and its three rules. Must not know: queues, policies, clocks, models.
`mixed` is Orca's (OSDI 2022), `exclusive` is prefill first (vLLM's first scheduler), `chunked` is Sarathi-Serve's
(OSDI 2024).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar

from batchviz.request import Sequence


class PrefillMode(StrEnum):
    """How prompts share a step with decoding sequences."""

    MIXED = "mixed"  # whole prompts and decoding tokens in one step
    EXCLUSIVE = "exclusive"  # a step that prefills stalls the decoding slots
    CHUNKED = "chunked"  # decoding tokens first, prompt pieces in what is left of the budget


class Prefill(ABC):
    """A rule. `seated` are unfinished sequences with a slot; a share is a number of tokens, 0 means stalled."""

    mode: ClassVar[PrefillMode]

    def tokens_left(self, seated: Iterable[Sequence]) -> float:
        """What the budget has left once the seated are served. There is a budget in `chunked` alone."""
        return math.inf

    @abstractmethod
    def shares(self, seated: list[Sequence]) -> list[int]:
        """How many tokens each is fed, in the order given."""


class MixedPrefill(Prefill):
    """Everyone works: a new sequence feeds its whole prompt, the others the one token they sampled last."""

    mode = PrefillMode.MIXED

    def shares(self, seated: list[Sequence]) -> list[int]:
        return [_missing(sequence) for sequence in seated]


class ExclusivePrefill(Prefill):
    """If anyone has a prompt to read, whole prompts are read and nobody decodes; otherwise everyone decodes."""

    mode = PrefillMode.EXCLUSIVE

    def shares(self, seated: list[Sequence]) -> list[int]:
        if not any(sequence.is_prefilling for sequence in seated):
            return [1] * len(seated)
        return [_missing(sequence) if sequence.is_prefilling else 0 for sequence in seated]


class ChunkedPrefill(Prefill):
    """One token for each decoding sequence first; then prompts, in the order of admission, until the budget is spent.

    `max_batched_tokens` is at least the number of slots, so a decoding sequence is never stalled.
    """

    mode = PrefillMode.CHUNKED

    def __init__(self, max_batched_tokens: int) -> None:
        self._budget = max_batched_tokens

    def tokens_left(self, seated: Iterable[Sequence]) -> float:
        return max(self._budget - sum(_missing(sequence) for sequence in seated), 0)

    def shares(self, seated: list[Sequence]) -> list[int]:
        left = self._budget
        shares = [0] * len(seated)
        by_turn = sorted(range(len(seated)), key=lambda i: (seated[i].is_prefilling, seated[i].admission))
        for i in by_turn:
            shares[i] = min(_missing(seated[i]), left)
            left -= shares[i]
        return shares


def make_prefill(mode: PrefillMode, num_slots: int, max_batched_tokens: int | None) -> Prefill:
    """The rule of a mode. Raises ValueError if the budget is missing, out of place, or less than a token a slot."""
    if mode is not PrefillMode.CHUNKED:
        if max_batched_tokens is not None:
            raise ValueError(f"max_batched_tokens belongs to prefill mode chunked; the mode is {mode}")
        return MixedPrefill() if mode is PrefillMode.MIXED else ExclusivePrefill()
    if max_batched_tokens is None:
        raise ValueError("prefill mode chunked needs max_batched_tokens, at least one for each slot")
    if max_batched_tokens < num_slots:
        raise ValueError(
            f"max_batched_tokens is {max_batched_tokens}; {num_slots} slots need at least {num_slots}, one for each"
        )
    return ChunkedPrefill(max_batched_tokens)


def _missing(sequence: Sequence) -> int:
    """Tokens it could be fed: what is left of its prompt, or the one token it sampled last."""
    missing = sequence.num_prompt_tokens - sequence.num_computed_tokens
    return max(1, missing)
