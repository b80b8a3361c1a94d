"""Does a batch change an answer on this machine? Asked of the loaded model, once, in about a second.

Owns: the question and the sentence that answers it. Must not know: how a model is loaded, what a trace is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from batchviz.model.runner import TorchRunner
from batchviz.request import GREEDY
from batchviz.scheduler import ScheduledSequence

CAPACITY = 512
NUM_PROMPT_TOKENS = 24
NUM_DECODED = 1
SLOT = 2  # of the batch; its neighbours are 0, 1 and 3
CHANGED = "On this machine a batch changes logits (by up to {difference:.1g}); near ties may be decided otherwise."
SAME_BUT_PIECES = "A request has the same logits alone and in a batch, to the bit, but not with its prompt in pieces."
SAME = "A request has the same logits alone, in a batch, and with its prompt in pieces, to the bit."


class Exactness(NamedTuple):
    """What the check found: did every logit keep its bits, and a sentence about it."""

    exact: bool
    note: str


def check_exactness(make_runner: Callable[[int, int], TorchRunner], vocab_size: int) -> Exactness:
    """Runs one request alone, beside neighbours, and with its prompt in two pieces; compares every logit with ==.

    `make_runner` takes the number of slots and their capacity. What a model raises that cannot be batched goes through.
    """
    prompt = tuple((7 + 31 * index) % vocab_size for index in range(NUM_PROMPT_TOKENS))
    alone = _logits(make_runner(1, CAPACITY), prompt, 0, pieces=(NUM_PROMPT_TOKENS,), beside=False)
    batched = _logits(make_runner(4, CAPACITY), prompt, SLOT, pieces=(NUM_PROMPT_TOKENS,), beside=True)
    pieces = _logits(make_runner(4, CAPACITY), prompt, SLOT, pieces=(NUM_PROMPT_TOKENS - 1, 1), beside=True)
    if not torch.equal(alone, batched):
        difference = (alone.float() - batched.float()).abs().max().item()
        return Exactness(False, CHANGED.format(difference=difference))
    return Exactness(True, SAME if torch.equal(alone, pieces) else SAME_BUT_PIECES)


def _logits(
    runner: TorchRunner, prompt: tuple[int, ...], slot: int, *, pieces: tuple[int, ...], beside: bool
) -> torch.Tensor:
    """The logits after the prompt and after each of a few tokens that follow, [1 + NUM_DECODED, vocab]."""
    rows: list[torch.Tensor] = []
    tokens = prompt + prompt[:NUM_DECODED]
    position = 0
    for index, length in enumerate((*pieces, *[1] * NUM_DECODED)):
        is_prefill, samples = index < len(pieces), index >= len(pieces) - 1
        works = [_work(slot, tokens[position : position + length], position, is_prefill, samples)]
        if beside:  # 0 and 1 are far on (that their caches are blank is all the same to us), 3 reads a prompt
            far_on = [_work(0, prompt[:1], 40 + index, False, True), _work(1, prompt[1:2], 400 + index, False, True)]
            works = [*far_on, *works, _work(3, prompt[:5], 5 * index, True, True)]
        step = runner.pack(tuple(works))
        logits = runner.forward(step)
        rows += [logits[row] for row, work in enumerate(step.sampling) if work.slot == slot]
        position += length
    return torch.stack(rows)


def _work(slot: int, token_ids: tuple[int, ...], start: int, is_prefill: bool, samples: bool) -> ScheduledSequence:
    return ScheduledSequence(slot, f"check-{slot}", token_ids, start, is_prefill, samples, 0, GREEDY, frozenset())
