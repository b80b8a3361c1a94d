"""The peers answer what they are asked, as this engine does; and the measurement compares what it says it compares."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from batchviz.cli_bench import Contest
from batchviz.model import peer_bench
from batchviz.model.load import LoadedModel
from batchviz.model.peer_bench import busy_sentence, measure_peers, resident_bytes, rows_to_plain
from batchviz.model.peers import Generate, GenerateBatch, Own, PeerError, Prompts, make_peers
from tests.model.tiny import prompt_of, tiny_network

pytestmark = pytest.mark.model

PROMPTS = [prompt_of(length, seed) for seed, length in enumerate((9, 40, 23))]
NUM_TOKENS = 12


@pytest.mark.parametrize("peer", [Generate, GenerateBatch])
def test_a_peer_gives_the_tokens_of_this_engine(tiny32: LoadedModel, peer: type[Generate | GenerateBatch]) -> None:
    own = Own(tiny32)
    expected = own.answer(PROMPTS, NUM_TOKENS)
    assert [len(answer) for answer in expected] == [NUM_TOKENS] * 3
    assert 0 < own.outside_s < own.duration_s
    assert peer(tiny_network(torch.float32, implementation="sdpa")).answer(PROMPTS, NUM_TOKENS) == expected


class Clock:
    """Seconds that pass only while somebody answers."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Timed:
    def __init__(self, name: str, clock: Clock, seconds: list[float]) -> None:
        self.name, self._clock, self._seconds = name, clock, seconds
        self.outside_s, self.duration_s = 0.02, 1.0

    def answer(self, prompts: Prompts, num_tokens: int) -> list[list[int]]:
        self._clock.now += self._seconds.pop(0)
        return [[1] * (num_tokens - 1) + [ord(self.name[0])] for _ in prompts]


def test_medians_are_compared_and_the_warm_up_is_not_counted() -> None:
    clock = Clock()
    own = Timed("batchviz", clock, [100, 2, 4, 3])
    other = Timed("generate", clock, [100, 9, 6, 5])
    rows, overhead = measure_peers(
        own,  # type: ignore[arg-type]
        [other],
        lambda count: [(1, 2)] * count,
        [2],
        num_tokens=6,
        repeats=3,
        progress=lambda message, fraction: None,
        clock=clock,
    )
    assert overhead == {"snapshot_pct": pytest.approx(2)}
    ours, theirs = rows_to_plain(rows)
    assert ours == {
        "engine": "batchviz", "slots": 2, "tok_s": 4, "fastest_tok_s": 6, "slowest_tok_s": 3, "ms_per_step": 500,
        "ratio_to_generate": 2, "same_tokens": 0.833,
    }  # fmt: skip
    assert (theirs["tok_s"], theirs["ratio_to_generate"], theirs["same_tokens"]) == (2, 1, 1)


def test_a_busy_machine_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for busy_pct, sentence in ((3.0, None), (60.0, "this machine is busy (60 % of its processors)")):
        monkeypatch.setattr(peer_bench.psutil, "cpu_percent", lambda interval, found=busy_pct: found)
        said = busy_sentence()
        assert said == sentence if sentence is None else said is not None and said.startswith(sentence)
    assert resident_bytes() > 50e6


def test_a_peer_that_nobody_knows_is_refused_and_one_that_is_not_here_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(PeerError, match="'vllm' is not a peer; there are generate, generate_batch, llama_cpp"):
        make_peers(["vllm"], "nowhere", torch.float32)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    peers, left_out = make_peers(["llama_cpp"], "nowhere", torch.float32)
    assert peers == []
    assert "llama_cpp is left out" in left_out[0]


@pytest.mark.parametrize(
    ("slots", "quick", "sentence"),
    [
        ("0", False, "whole numbers from 1 to 64"),
        ("x", False, "whole numbers"),
        ("1,65", False, "1 to 64"),
        ("1,8", True, "one number"),
    ],
)
def test_slots_that_cannot_be_measured_are_refused(slots: str, quick: bool, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Contest.asked(slots, None, quick)


def test_what_is_usual_is_measured_where_nothing_is_said() -> None:
    assert Contest.asked(None, None, False) == Contest((1, 8, 32), ("generate",), 64, 3)
    assert Contest.asked(None, "", True) == Contest((8,), (), 12, 1)


@pytest.mark.timeout(300)
def test_the_terminal_measures_the_real_model_within_a_minute() -> None:
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-m", "batchviz", "bench", "--quick", "--slots", "2", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["schema"] == "batchviz-bench/1"
    engines = ["batchviz", *(["batchviz-float32"] if data["dtype"] == "float16-weights" else []), "generate"]
    assert [(row["engine"], row["slots"]) for row in data["rows"]] == [(engine, 2) for engine in engines]
    assert data["rows"][0]["same_tokens"] > 0.9
    assert data["overhead"]["snapshot_pct"] < 50
    assert [step["slots"] for step in data["steps"]] == [2]
    assert data["exact"] is True
