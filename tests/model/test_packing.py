"""A batch is a batch: one forward pass a step, every token of the step in one row through every linear layer."""

from __future__ import annotations

from typing import Any

import pytest

from batchviz.model.linear import JoinedLinear, PackedLinear
from batchviz.model.load import LoadedModel
from batchviz.runner import RunnerOutput
from batchviz.scheduler import Policy, SchedulerOutput
from tests.model.tiny import prompt_of, request, run, watch, work

pytestmark = pytest.mark.model


def test_every_linear_sees_one_row_of_all_tokens_once_a_step(tiny32: LoadedModel) -> None:
    seen: dict[str, list[tuple[int, ...]]] = {}
    passes: list[int] = []
    network: Any = tiny32.network
    hooks = [network.register_forward_hook(lambda *_: passes.append(1))]
    for name, module in network.named_modules():
        if isinstance(module, PackedLinear | JoinedLinear):
            hooks.append(
                module.register_forward_pre_hook(
                    lambda _, inputs, name=name: seen.setdefault(name, []).append(tuple(inputs[0].shape))
                )
            )
    try:
        requests = [request(f"r{i}", prompt_of(3 + 11 * i, i), 2 + 3 * i) for i in range(6)]
        _, snapshots = run(tiny32, Policy.CONTINUOUS, 3, requests)
    finally:
        for hook in hooks:
            hook.remove()
    assert len(passes) == len(snapshots)
    assert len(seen) == 2 * 4 + 1  # qkv, out, gate_up, down of two layers, and the head
    expected = [snapshot.num_rows + snapshot.num_dummy_rows for snapshot in snapshots]
    for name, shapes in seen.items():
        if name == "head":  # only where a token is sampled, and never a single row
            sampled = [sum(slot.token_id is not None for slot in snapshot.slots) for snapshot in snapshots]
            assert [shape[:2] for shape in shapes] == [(1, max(count, 2)) for count in sampled]
        else:
            assert [shape[:2] for shape in shapes] == [(1, rows) for rows in expected], name
    assert {snapshot.num_rows for snapshot in snapshots} >= {1, 2, 3}  # so a lone token was among them
    assert all(snapshot.num_dummy_rows == (snapshot.num_rows == 1) for snapshot in snapshots)


def test_a_step_without_work_runs_nothing(tiny32: LoadedModel) -> None:
    runner = watch(tiny32, 2)
    assert runner.execute(SchedulerOutput(0, (), ())) == RunnerOutput({}, 0.0, 0.0, 0)
    assert runner.steps == []


def test_decoding_slots_come_first_then_prompts_then_dummies(tiny32: LoadedModel) -> None:
    runner = watch(tiny32, 4)
    step = runner.pack((work(0, (5, 6, 7), 0, prefill=True), work(1, (8,), 40), work(3, (9,), 2)))
    assert step.token_ids.tolist() == [[8, 9, 5, 6, 7]]
    assert step.positions.tolist() == [[40, 2, 0, 1, 2]]
    assert step.sampled_rows.tolist() == [4, 0, 1]  # in slot order
    lone = runner.pack((work(1, (8,), 40),))
    assert lone.token_ids.tolist() == [[8, 8]]
    assert (lone.attention.num_rows, lone.num_dummy_rows) == (1, 1)


def test_times_are_the_clocks(tiny32: LoadedModel) -> None:
    ticks = iter([10.0, 12.5, 13.0])
    runner = tiny32.make_runner(1, 64, lambda: next(ticks))
    output = runner.execute(SchedulerOutput(0, (work(0, (5, 6), 0, prefill=True),), ()))
    assert (output.forward_s, output.sample_s) == (2.5, 0.5)


def test_the_cache_is_used_again_only_when_its_runner_is_gone(tiny32: LoadedModel) -> None:
    first = tiny32.make_runner(3, 100, float)
    second = tiny32.make_runner(3, 100, float)
    assert second._cache is not first._cache
    cache = second._cache
    del second
    assert tiny32.make_runner(3, 128, float)._cache is cache  # 100 and 128 are the same number of windows


def test_slots_longer_than_the_model_are_refused(tiny32: LoadedModel) -> None:
    with pytest.raises(ValueError, match="2049 positions is more than the 2048"):
        tiny32.make_runner(1, 2049, float)
    with pytest.raises(ValueError, match="at least 1"):
        tiny32.make_runner(0, 64, float)
