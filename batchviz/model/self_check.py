"""Does a batch change an answer on this machine? Asked of the loaded model, once, in the time of four steps: under a second.

Owns: the question and the sentence that answers it. Must not know: how a model is loaded, what a trace is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from batchviz.model.runner import TorchRunner
from batchviz.request import GREEDY
from batchviz.scheduler import ScheduledSequence

CAPACITY = 512
NUM_PROMPT_TOKENS = 24
WHOLE, PIECES = 2, 3  # slots of the batch: the request with its prompt at once, and in two pieces
NUM_SLOTS, NUM_STEPS = 5, 2

CHANGED = "On this machine a batch changes logits (by up to {difference:.1g}); near ties may be decided otherwise."
SAME_BUT_PIECES = "A request has the same logits alone and in a batch, to the bit, but not with its prompt in pieces."
SAME = "A request has the same logits alone, in a batch, and with its prompt in pieces, to the bit."


class Exactness(NamedTuple):
    """What the check found: did every logit keep its bits, and a sentence about it."""

    exact: bool
    note: str


def check_exactness(make_runner: Callable[[int, int], TorchRunner], vocab_size: int) -> Exactness:
    """Runs one request alone, and twice in one batch: its prompt at once, and in two pieces; compares every logit with ==.

    The last piece is one token that looks back at what the first left in the cache, so nothing needs to follow it.

    `make_runner` takes the number of slots and their capacity. What a model raises that cannot be batched goes through.
    """
    prompt = tuple((7 + 31 * index) % vocab_size for index in range(NUM_PROMPT_TOKENS))
    (alone,) = _logits(make_runner(1, CAPACITY), [_at_once(0, prompt)])
    together = [_at_once(WHOLE, prompt), _in_pieces(PIECES, prompt)]
    batched, in_pieces = _logits(make_runner(NUM_SLOTS, CAPACITY), together, _neighbours(prompt))
    if not torch.equal(alone, batched):
        difference = (alone.float() - batched.float()).abs().max().item()
        return Exactness(False, CHANGED.format(difference=difference))
    return Exactness(True, SAME if torch.equal(alone[:1], in_pieces) else SAME_BUT_PIECES)


def _at_once(slot: int, prompt: tuple[int, ...]) -> list[ScheduledSequence]:
    """The prompt, and in the next step one token after it."""
    return [_work(slot, prompt, 0, True, True), _work(slot, prompt[:1], len(prompt), False, True)]


def _in_pieces(slot: int, prompt: tuple[int, ...]) -> list[ScheduledSequence]:
    """The prompt but for its last token, and in the next step that."""
    return [_work(slot, prompt[:-1], 0, True, False), _work(slot, prompt[-1:], len(prompt) - 1, True, True)]


def _neighbours(prompt: tuple[int, ...]) -> list[list[ScheduledSequence]]:
    """Two that are far on (that their caches are blank is all the same to us), and one that reads a prompt."""
    return [
        [_work(0, prompt[:1], 40 + step, False, True) for step in range(NUM_STEPS)],
        [_work(1, prompt[1:2], 400 + step, False, True) for step in range(NUM_STEPS)],
        [_work(4, prompt[:5], 5 * step, True, True) for step in range(NUM_STEPS)],
    ]


def _logits(
    runner: TorchRunner,
    requests: Sequence[Sequence[ScheduledSequence]],
    neighbours: Sequence[Sequence[ScheduledSequence]] = (),
) -> list[torch.Tensor]:
    """Each request's logits after its prompt, and after the token that follows if one does: [1 or 2, vocab]."""
    found: dict[int, list[torch.Tensor]] = {request[0].slot: [] for request in requests}
    for works in zip(*neighbours, *requests, strict=True):
        step = runner.pack(works)
        for work, row in zip(step.sampling, runner.forward(step), strict=True):
            if work.slot in found:
                found[work.slot].append(row)
    return [torch.stack(rows) for rows in found.values()]


def _work(slot: int, token_ids: tuple[int, ...], start: int, is_prefill: bool, samples: bool) -> ScheduledSequence:
    return ScheduledSequence(slot, f"check-{slot}", token_ids, start, is_prefill, samples, 0, GREEDY, frozenset())
