"""Stale rows never leak: what lay in a slot before, even NaN, changes nothing."""

from __future__ import annotations

import pytest
import torch

from batchviz.engine import Engine
from batchviz.model.kv_cache import KVCache, round_up
from batchviz.model.load import LoadedModel
from batchviz.runner import RunnerOutput
from batchviz.scheduler import Policy, SchedulerOutput, make_scheduler
from tests.model.tiny import WatchedRunner, prompt_of, request, run, same_bits, tokens_of, watch, work

pytestmark = pytest.mark.model


def small_cache(capacity: int = 130) -> KVCache:
    return KVCache(
        num_layers=2,
        num_slots=3,
        num_heads=3,
        capacity=capacity,
        head_dim=4,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )


def test_windows_are_multiples_of_64() -> None:
    assert [round_up(n) for n in (1, 63, 64, 65, 700)] == [64, 64, 64, 128, 704]
    assert small_cache().keys.shape == (2, 3, 3, 192, 4)


def test_preparing_a_slot_blanks_its_window_and_nothing_else() -> None:
    cache = small_cache()
    cache.keys.fill_(float("nan"))
    cache.prepare(1, 0, 10, 128)
    blank = torch.isnan(cache.keys).logical_not().all(dim=-1).all(dim=0)  # [slots, heads, positions]
    assert blank[1, :, 10:128].all()
    assert blank.sum() == 3 * 118


def test_rows_that_were_written_are_never_blanked() -> None:
    cache = small_cache()
    cache.prepare(0, 0, 5, 64)
    cache.keys.fill_(1.0)
    cache.prepare(0, 5, 6, 64)
    cache.prepare(0, 6, 7, 192)
    assert (cache.keys[:, 0, :, :64] == 1).all()
    assert (cache.keys[:, 0, :, 64:192] == 0).all()


def test_a_new_sequence_in_a_slot_does_not_see_the_one_before() -> None:
    cache = small_cache()
    cache.prepare(0, 0, 150, 192)
    cache.keys.fill_(1.0)
    cache.prepare(0, 0, 3, 64)
    assert (cache.keys[:, 0, :, 3:64] == 0).all()


@pytest.mark.parametrize(
    ("slot", "start", "end", "window"),
    [(3, 0, 1, 64), (-1, 0, 1, 64), (0, -1, 1, 64), (0, 5, 4, 64), (0, 0, 65, 64), (0, 190, 193, 256)],
)
def test_what_the_cache_does_not_hold_is_refused_before_anything_is_computed(
    slot: int, start: int, end: int, window: int
) -> None:
    with pytest.raises(IndexError, match=f"positions {start} to {end} of slot {slot}; there are 3 slots of 192"):
        small_cache().prepare(slot, start, end, window)


def test_tokens_are_written_where_their_slot_and_position_say() -> None:
    cache = small_cache()
    slots, positions = torch.tensor([2, 0]), torch.tensor([7, 150])
    key = torch.arange(3 * 2 * 4, dtype=torch.float32).reshape(2, 3, 4) + 1
    cache.write(1, cache.row_indices(slots, positions), key, -key)
    assert torch.equal(cache.keys[1, 2, :, 7], key[0])
    assert torch.equal(cache.values[1, 0, :, 150], -key[1])
    assert int((cache.keys != 0).sum()) == key.numel()


@pytest.mark.parametrize("rubbish", [float("nan"), 1e30])
def test_a_cache_full_of_rubbish_changes_no_bit(tiny: LoadedModel, rubbish: float) -> None:
    requests = [request(f"r{i}", prompt_of(n, i), 3 + 5 * i) for i, n in enumerate((5, 200, 1, 64, 70, 9))]
    expected, _ = run(tiny, Policy.CONTINUOUS, 3, requests)
    runner = watch(tiny, 3)
    cache = runner._cache
    cache.keys.fill_(rubbish)
    cache.values.fill_(rubbish)
    engine = Engine(make_scheduler(Policy.CONTINUOUS, 3), runner)
    engine.add_all(requests)
    while engine.has_work:
        engine.step()
        for slot, clean in enumerate(cache._num_clean):  # every row that nobody has a right to
            cache.keys[:, slot, :, clean:] = rubbish
            cache.values[:, slot, :, clean:] = rubbish
    assert same_bits(runner.logits, expected.logits)


def test_a_slot_that_breaks_is_named_and_its_neighbours_go_on(tiny: LoadedModel) -> None:
    def steps(broken: bool) -> tuple[WatchedRunner, list[RunnerOutput]]:
        runner = watch(tiny, 3)
        prompts = tuple(work(slot, prompt_of(20, slot), 0, prefill=True) for slot in range(3))
        outputs = [runner.execute(SchedulerOutput(0, prompts, ()))]
        if broken:
            runner._cache.values[:, 1, :, 4] = float("nan")
        outputs.append(runner.execute(SchedulerOutput(1, tuple(work(slot, (30,), 20) for slot in range(3)), ())))
        return runner, outputs

    whole, expected = steps(broken=False)
    runner, outputs = steps(broken=True)
    assert dict(outputs[1].errors) == {1: "the model's logits are not finite numbers"}
    assert outputs[1].token_ids == {slot: expected[1].token_ids[slot] for slot in (0, 2)}
    for name in ("s0", "s2"):
        assert same_bits({name: runner.logits[name]}, {name: whole.logits[name]})


def test_an_error_ends_one_sequence_and_the_next_in_its_slot_is_unharmed(tiny32: LoadedModel) -> None:
    first, heir = request("first", prompt_of(10, 1), 30), request("heir", prompt_of(12, 2), 6)
    expected, _ = run(tiny32, Policy.SEQUENTIAL, 1, [heir])
    runner = watch(tiny32, 1)
    engine = Engine(make_scheduler(Policy.CONTINUOUS, 1), runner)
    engine.add_all([first, heir])
    snapshots = [engine.step(), engine.step()]
    runner._cache.keys.fill_(float("nan"))
    snapshots += engine.run()
    assert next((str(f.reason), s.step) for s in snapshots for f in s.finished) == ("error", 2)
    assert len(tokens_of(snapshots)["heir"]) == 6
    assert same_bits({"heir": runner.logits["heir"]}, expected.logits)
