"""From one row of logits to one token.

Owns: greedy, temperature, top-p, masked tokens. Must not know: slots, other rows, time.
A sampled token depends on the row, the request's seed and how many tokens it has so far: on nobody beside or before it.
"""

from __future__ import annotations

import random

import torch

from batchviz.request import SamplingParams


def are_finite(logits: torch.Tensor) -> list[bool]:
    """Of each row of [rows, vocab]: whether it holds neither NaN nor an infinity. (A sum shows either.)"""
    finite: list[bool] = torch.isfinite(logits.sum(dim=-1, dtype=torch.float32)).tolist()
    return finite


def greedy(logits: torch.Tensor) -> list[int]:
    """The most likely token of each row of [rows, vocab]; the lowest id if several are.

    Where NumPy can look at the row it does: it takes a tenth of torch's time for it.
    """
    seen = logits.numpy() if logits.device.type == "cpu" and logits.dtype == torch.float32 else logits
    token_ids: list[int] = seen.argmax(-1).tolist()
    return token_ids


def without(logits: torch.Tensor, masked_token_ids: frozenset[int]) -> torch.Tensor:
    """A copy of one row, [vocab], in which these tokens cannot be chosen."""
    allowed = logits.clone()
    allowed[sorted(masked_token_ids)] = float("-inf")
    return allowed


def sample(logits: torch.Tensor, sampling: SamplingParams, output_index: int) -> int:
    """One token from one row, [vocab]. Draws with a number that follows from (seed, output_index) alone.

    Top-p keeps the most likely tokens whose probabilities first reach `top_p` (Holtzman et al., ICLR 2020).
    """
    if sampling.temperature <= 0:
        return greedy(logits[None])[0]
    scaled = logits.detach().to(device="cpu", dtype=torch.float32).double() / sampling.temperature
    probabilities, token_ids = torch.softmax(scaled, dim=-1).sort(descending=True, stable=True)
    reached = probabilities.cumsum(dim=-1)
    num_kept = 1 + int((reached < sampling.top_p).sum()) if sampling.top_p < 1 else len(reached)
    num_kept = min(num_kept, len(reached))
    drawn = random.Random(f"{sampling.seed}/{output_index}").random() * float(reached[num_kept - 1])
    place = int(torch.searchsorted(reached[:num_kept], drawn, right=True))
    return int(token_ids[min(place, num_kept - 1)])
