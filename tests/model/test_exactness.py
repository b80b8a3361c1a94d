"""A request's tokens and logits are the same bits whatever the batch around it: compared with ==, never with a tolerance."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from batchviz.engine import Engine
from batchviz.model.load import LoadedModel
from batchviz.model.runner import PackedStep, TorchRunner
from batchviz.model.self_check import PIECES, SAME_BUT_PIECES, Exactness, check_exactness
from batchviz.request import Request
from batchviz.scheduler import Policy
from tests.model.tiny import WatchedRunner, prompt_of, request, run, same_bits, tokens_of, watch, work

pytestmark = pytest.mark.model

PROMPTS = (1, 5, 64, 700, 33, 130, 65, 320)
OUTPUTS = (12, 3, 20, 8, 1, 30, 5, 14)


def requests() -> list[Request]:
    return [request(f"r{i}", prompt_of(n, i), m) for i, (n, m) in enumerate(zip(PROMPTS, OUTPUTS, strict=True))]


@pytest.fixture(scope="module")
def alone(tiny: LoadedModel) -> tuple[WatchedRunner, dict[str, list[int]]]:
    """Every request by itself: the reference."""
    runner, snapshots = run(tiny, Policy.SEQUENTIAL, 1, requests())
    return runner, tokens_of(snapshots)


def test_the_self_check_holds_here_and_is_in_the_record(tiny: LoadedModel) -> None:
    assert tiny.record.exact is True
    assert "to the bit" in tiny.record.exact_note


def test_the_self_check_sees_what_a_batch_and_what_pieces_change(tiny: LoadedModel) -> None:
    def checked(changes: Callable[[PackedStep, int], bool]) -> Exactness:
        def make_runner(num_slots: int, capacity: int) -> TorchRunner:
            runner = tiny.make_runner(num_slots, capacity, float)
            forward = runner.forward

            def changed(step: PackedStep) -> torch.Tensor:
                logits = forward(step).clone()
                rows = [row for row in range(len(step.sampling)) if changes(step, row)]
                logits[rows, 0] += 0.5
                return logits

            runner.forward = changed  # type: ignore[method-assign]
            return runner

        return check_exactness(make_runner, tiny.vocab_size)

    assert checked(lambda step, row: False).exact
    in_batch = checked(lambda step, row: len(step.sampling) > 1)
    assert not in_batch.exact
    assert "a batch changes logits (by up to 0.5)" in in_batch.note
    in_pieces = checked(lambda step, row: step.sampling[row].slot == PIECES)
    assert in_pieces == Exactness(True, SAME_BUT_PIECES)


def test_the_requests_are_told_apart_by_their_answers(alone: tuple[WatchedRunner, dict[str, list[int]]]) -> None:
    _, tokens = alone
    assert len({tuple(ids[:3]) for ids in tokens.values()}) == len(PROMPTS)
    assert max(len(set(ids)) for ids in tokens.values()) > 5


@pytest.mark.parametrize("num_slots", [*range(1, 9), 16, 32])
@pytest.mark.parametrize("policy", [Policy.STATIC, Policy.CONTINUOUS])
def test_no_policy_and_no_slot_count_changes_a_bit(
    tiny: LoadedModel, alone: tuple[WatchedRunner, dict[str, list[int]]], policy: Policy, num_slots: int
) -> None:
    runner, snapshots = run(tiny, policy, num_slots, requests())
    assert tokens_of(snapshots) == alone[1]
    assert same_bits(runner.logits, alone[0].logits)


@pytest.mark.parametrize("seed", range(3))
def test_no_slot_and_no_arrival_order_changes_a_bit(
    tiny: LoadedModel, alone: tuple[WatchedRunner, dict[str, list[int]]], seed: int
) -> None:
    order = random.Random(seed)
    shuffled = order.sample(requests(), len(PROMPTS))
    arriving = [Request(one.id, one.prompt_token_ids, one.max_tokens, arrival=order.randrange(12)) for one in shuffled]
    runner, snapshots = run(tiny, Policy.CONTINUOUS, 3 + seed, arriving)
    assert tokens_of(snapshots) == alone[1]
    assert same_bits(runner.logits, alone[0].logits)


def test_neighbours_that_come_and_go_change_no_bit(
    tiny: LoadedModel, alone: tuple[WatchedRunner, dict[str, list[int]]]
) -> None:
    for seed in range(3):
        others = [
            request(f"x{i}", prompt_of(17 * (i + 1) % 90 + 1, 50 + seed * 9 + i), 1 + i * 3 % 7) for i in range(9)
        ]
        runner, _ = run(tiny, Policy.CONTINUOUS, 4, [*others[:5], requests()[5], *others[5:]])
        assert same_bits({"r5": runner.logits["r5"]}, {"r5": alone[0].logits["r5"]})


@pytest.mark.parametrize("policy", [Policy.STATIC, Policy.CONTINUOUS])
def test_a_user_who_leaves_changes_no_bit_of_anybody_else(
    tiny: LoadedModel, alone: tuple[WatchedRunner, dict[str, list[int]]], policy: Policy
) -> None:
    def leave(engine: Engine) -> None:
        if engine.step_number in (1, 4):
            engine.abort("r2" if engine.step_number == 1 else "r6")

    runner, _ = run(tiny, policy, 4, requests(), before_step=leave)
    staying = [name for name in alone[0].logits if name not in ("r2", "r6")]
    assert same_bits({name: runner.logits[name] for name in staying}, {name: alone[0].logits[name] for name in staying})


@pytest.mark.parametrize("pieces", [(1,), (7,), (64,), (100, 1, 29), (256,)], ids=str)
def test_a_prompt_read_in_pieces_gives_the_same_bits(tiny: LoadedModel, pieces: tuple[int, ...]) -> None:
    prompt = prompt_of(130, 5)
    whole = _after_reading(tiny, prompt, (130,))
    assert all(map(torch.equal, _after_reading(tiny, prompt, pieces), whole))


def test_a_token_read_and_a_token_sampled_give_the_same_bits(tiny: LoadedModel) -> None:
    """What makes it exact to read a sequence again, its answer so far included, after its slot was taken away."""
    prompt = prompt_of(70, 2)
    runner = watch(tiny, 2)
    runner.forward(runner.pack((work(0, prompt[:60], 0, prefill=True),)))
    for position in range(60, 70):
        decoded = runner.forward(runner.pack((work(0, prompt[position : position + 1], position),)))
    read = runner.forward(runner.pack((work(1, prompt, 0, prefill=True),)))
    assert torch.equal(decoded, read)


def _after_reading(loaded: LoadedModel, prompt: tuple[int, ...], pieces: tuple[int, ...]) -> list[torch.Tensor]:
    """Logits after the prompt, read in pieces (the last size repeats) beside a decoding neighbour, and 4 tokens more."""
    runner = watch(loaded, 3)
    runner.forward(runner.pack((work(0, prompt_of(90, 8), 0, prefill=True),)))
    logits, start, at = [], 0, 0
    while start < len(prompt):
        piece = prompt[start : start + pieces[min(at, len(pieces) - 1)]]
        last = start + len(piece) == len(prompt)
        step = runner.pack((work(0, (9,), 90 + at), work(2, piece, start, prefill=True, samples=last)))
        if last:
            logits.append(runner.forward(step)[-1])
        else:
            assert len(runner.forward(step)) == 1  # the neighbour's row alone goes through the head
        start, at = start + len(piece), at + 1
    for token in range(4):
        logits.append(runner.forward(runner.pack((work(2, (11 + token,), start + token),)))[0])
    return logits
