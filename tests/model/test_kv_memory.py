"""A KV cache that is larger than the memory at hand is refused beforehand, with the arithmetic; usual runs never are."""

from __future__ import annotations

import time

import pytest

from batchviz.live import LiveModel
from batchviz.model import load
from batchviz.model.kv_memory import ALWAYS_FITS_BYTES, why_too_large
from batchviz.model.load import LoadedModel
from batchviz.runs import make_config
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy

pytestmark = pytest.mark.model

BYTES_PER_TOKEN = 46_080  # SmolLM2-135M in float32
LONG = Scenario("long", "Long", tuple(ScenarioRequest(f"r{i}", 800, prompt="Tell a story.") for i in range(3)))
LONG_POSITIONS = 896  # 800 and the prompt, in whole windows


def test_the_sentence_has_the_arithmetic_and_what_to_do() -> None:
    assert why_too_large(64, 1024, BYTES_PER_TOKEN, 1_200_000_000) == (
        "the KV cache does not fit: 64 slots × 1,024 positions × 46,080 bytes per token = 3.02 GB; 1.20 GB are available; "
        "take at most 25 slots, or shorter prompts and answers"
    )


def test_where_not_even_one_slot_fits_it_asks_for_less() -> None:
    why = why_too_large(1, 8192, BYTES_PER_TOKEN, 100)
    assert why is not None
    assert why.endswith("0.00 GB are available; ask for shorter prompts and answers")


@pytest.mark.parametrize("available", [25 * 1024 * BYTES_PER_TOKEN, 10**12, None])
def test_what_fits_to_the_byte_is_taken(available: int | None) -> None:
    assert why_too_large(25, 1024, BYTES_PER_TOKEN, available) is None


def test_one_byte_less_is_not_enough() -> None:
    assert why_too_large(25, 1024, BYTES_PER_TOKEN, 25 * 1024 * BYTES_PER_TOKEN - 1) is not None


def test_a_small_cache_is_never_refused() -> None:
    slots = ALWAYS_FITS_BYTES // (256 * BYTES_PER_TOKEN)
    assert slots >= 16
    assert why_too_large(slots, 256, BYTES_PER_TOKEN, 0) is None
    assert why_too_large(slots + 1, 256, BYTES_PER_TOKEN, 0) is not None


@pytest.fixture
def live(real32: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> LiveModel:
    """The real model on a machine with 300 MB left."""
    monkeypatch.setattr(load, "available_bytes", lambda device: 300_000_000)
    return LiveModel(real32, time.perf_counter)


def test_a_run_is_refused_before_its_first_step_and_the_model_goes_on(live: LiveModel) -> None:
    record = live.prepare(LONG, 1024)
    large, small = make_config(Policy.STATIC, 64), make_config(Policy.STATIC, 2)
    sentence = rf"64 slots × {LONG_POSITIONS} positions × 46,080 bytes per token = 2\.64 GB; 0\.\d\d GB are available"
    for refused in (lambda: live.check_memory(record, [large]), lambda: live.start(record, large)):
        with pytest.raises(ValueError, match=sentence):
            refused()
    run = live.start(record, small)
    assert run.step().num_rows > 2


def test_runs_that_go_on_together_need_memory_together(live: LiveModel) -> None:
    record = live.prepare(LONG, 1024)
    five = [make_config(Policy.STATIC, 5), make_config(Policy.CONTINUOUS, 5)]
    for config in five:
        live.check_memory(record, [config])
    with pytest.raises(ValueError, match="10 slots"):
        live.check_memory(record, five)


def test_a_cache_that_nobody_uses_counts_as_room(live: LiveModel) -> None:
    record = live.prepare(LONG, 1024)
    live.start(record, make_config(Policy.STATIC, 7)).step()  # 289 MB; its run is gone
    live.check_memory(record, [make_config(Policy.STATIC, 14)])
    holding = live.start(record, make_config(Policy.STATIC, 7))
    with pytest.raises(ValueError, match="14 slots"):
        live.check_memory(record, [make_config(Policy.STATIC, 14)])
    assert holding.has_work
