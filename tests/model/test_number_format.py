"""In which format a model is kept: what is refused, what is chosen, and that rows of float16 weights keep their bits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from batchviz.model import number_format
from batchviz.model.half_linear import LARGEST, HalfLinear, row_unit
from batchviz.model.linear import PackedLinear, can_pack
from batchviz.model.load import LoadedModel, load_model
from batchviz.model.number_format import (
    BFLOAT16,
    DTYPES,
    FLOAT16_WEIGHTS,
    FLOAT32,
    MACHINES,
    TIMINGS_FILE,
    LinearKind,
    choose_dtype,
    linear_for,
)
from batchviz.model.split import linear_layers
from batchviz.scheduler import Policy
from tests.model.tiny import prompt_of, request, run, tiny_model, tiny_network, watch, work

pytestmark = pytest.mark.model

CPU = torch.device("cpu")
needs_halves = pytest.mark.skipif(row_unit() is None, reason="this machine keeps no weights in float16")


def test_what_is_asked_for_is_given() -> None:
    assert choose_dtype(BFLOAT16, CPU) == BFLOAT16
    assert choose_dtype(FLOAT32, CPU) == FLOAT32
    assert DTYPES[FLOAT16_WEIGHTS] == torch.float32


def test_what_cannot_be_had_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="'float16' is unknown; there are float32, bfloat16, float16-weights"):
        choose_dtype("float16", CPU)
    with pytest.raises(ValueError, match="'float16-weights' cannot be had here: it needs torch on an x86 processor"):
        choose_dtype(FLOAT16_WEIGHTS, torch.device("cuda"))
    monkeypatch.setattr(number_format, "row_unit", lambda: None)
    with pytest.raises(ValueError, match="say float32"):
        choose_dtype(FLOAT16_WEIGHTS, CPU)
    assert choose_dtype(None, CPU) == FLOAT32


class Timer:
    """In the place of the real timing: says what it is told, and keeps what it was asked."""

    def __init__(self, half_s: float) -> None:
        self.half_s = half_s
        self.asked: list[dict[str, LinearKind]] = []

    def __call__(self, kinds: dict[str, LinearKind]) -> dict[str, float]:
        self.asked.append(kinds)
        return {FLOAT32: 1.0, FLOAT16_WEIGHTS: self.half_s}


@pytest.mark.parametrize(("half_s", "chosen"), [(0.5, FLOAT16_WEIGHTS), (0.95, FLOAT32), (2.0, FLOAT32)])
@needs_halves
def test_the_faster_one_is_chosen_and_the_timing_is_made_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, half_s: float, chosen: str
) -> None:
    timer = Timer(half_s)
    monkeypatch.setattr(number_format, "_steps_s", timer)
    folder = tmp_path / "not" / "there"
    assert [choose_dtype(None, CPU, folder) for _ in range(3)] == [chosen] * 3
    assert timer.asked == [{FLOAT32: linear_for(FLOAT32, CPU), FLOAT16_WEIGHTS: HalfLinear}]
    ((machine, seconds),) = json.loads((folder / TIMINGS_FILE).read_text())["seconds"].items()
    assert seconds == {FLOAT32: 1.0, FLOAT16_WEIGHTS: half_s}
    assert "torch" in machine


@needs_halves
def test_another_machine_does_not_make_one_forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    timer = Timer(0.5)
    monkeypatch.setattr(number_format, "_steps_s", timer)
    for name in ("this", "that", "this", "that"):
        monkeypatch.setattr(number_format, "describe_machine", lambda name=name: name)
        timer.half_s = 0.5 if name == "this" else 2.0
        assert choose_dtype(None, CPU, tmp_path) == (FLOAT16_WEIGHTS if name == "this" else FLOAT32)
    assert len(timer.asked) == 2
    for number in range(MACHINES):
        monkeypatch.setattr(number_format, "describe_machine", lambda number=number: str(number))
        choose_dtype(None, CPU, tmp_path)
    kept = list(json.loads((tmp_path / TIMINGS_FILE).read_text())["seconds"])
    assert [machine.split(",")[0] for machine in kept] == [str(number) for number in range(MACHINES)]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 1}', '{"seconds": {"here": {}}}', '{"seconds": 3}', '{"seconds": {"a": 1}}']
)
@needs_halves
def test_what_is_no_timing_is_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    monkeypatch.setattr(number_format, "_steps_s", Timer(1.0))
    place = tmp_path / TIMINGS_FILE
    schema = {"schema": number_format.TIMINGS_SCHEMA}
    place.write_text(json.dumps(schema | json.loads(text)) if text.startswith("{") else text)
    assert choose_dtype(None, CPU, tmp_path) == FLOAT32
    ((_, seconds),) = json.loads(place.read_text())["seconds"].items()
    assert seconds[FLOAT32] == 1.0


@needs_halves
def test_a_folder_that_cannot_be_written_to_is_no_hindrance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(number_format, "_steps_s", Timer(1.0))
    (tmp_path / "file").write_text("")
    assert choose_dtype(None, CPU, tmp_path / "file") == FLOAT32


@needs_halves
def test_a_real_timing_takes_a_moment_and_is_a_time() -> None:
    found = number_format._steps_s({name: linear_for(name, CPU) for name in (FLOAT32, FLOAT16_WEIGHTS)})
    assert list(found) == [FLOAT32, FLOAT16_WEIGHTS]
    assert all(0 < seconds < 1 for seconds in found.values())


@pytest.mark.parametrize("kind", [PackedLinear, HalfLinear])
@pytest.mark.parametrize(("out_features", "in_features"), [(960, 576), (576, 1536), (77, 100), (8, 2000)])
def test_rows_for_is_how_many_rows_it_takes_to_keep_ones_bits(
    kind: LinearKind, out_features: int, in_features: int
) -> None:
    if (kind is HalfLinear and row_unit() is None) or (kind is PackedLinear and not can_pack(CPU, torch.float32)):
        pytest.skip("not on this machine")
    torch.manual_seed(3)
    layer = kind(torch.nn.Linear(in_features, out_features).requires_grad_(False))
    rows = torch.randn(1, kind.rows_for(370), in_features)
    expected = layer(rows)
    for count in (*range(1, 40), 64, 100, 121, 126, 127, 160, 240, 250, 367, 370):
        padded = torch.cat((rows[:, :count], torch.ones(1, kind.rows_for(count) - count, in_features)), dim=1)
        assert torch.equal(layer(padded)[:, :count], expected[:, :count]), count


@needs_halves
def test_a_weight_beyond_float16_is_refused() -> None:
    for value in (LARGEST * 2, float("nan")):
        layer = torch.nn.Linear(8, 8).requires_grad_(False)
        layer.weight[3, 3] = value
        with pytest.raises(ValueError, match=r"larger than float16 can hold \(65,504\); say --dtype float32"):
            HalfLinear(layer)


@needs_halves
def test_a_model_with_such_a_weight_is_loaded_in_float32_unless_somebody_insists(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(number_format, "_steps_s", Timer(0.5))
    monkeypatch.setenv("BATCHVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", lambda *_, **__: None)
    network = tiny_network(torch.float32)
    network.save_pretrained(tmp_path / "fits")
    network.model.layers[1].mlp.down_proj.weight.data[0, 0] = 1e6
    network.save_pretrained(tmp_path / "large")
    assert load_model(str(tmp_path / "fits"), device="cpu").record.dtype == FLOAT16_WEIGHTS
    assert load_model(str(tmp_path / "large"), device="cpu").record.dtype == FLOAT32
    with pytest.raises(ValueError, match="larger than float16 can hold"):
        load_model(str(tmp_path / "large"), device="cpu", dtype=FLOAT16_WEIGHTS)


@pytest.fixture(scope="module")
def halves() -> LoadedModel:
    return tiny_model(FLOAT16_WEIGHTS)


@needs_halves
def test_dummies_fill_a_step_up_and_belong_to_nobody(halves: LoadedModel) -> None:
    unit = row_unit() or 1
    runner = watch(halves, 4)
    lone = runner.pack((work(1, (8,), 40),))
    assert lone.token_ids.shape == (1, halves.network.rows_for(1))
    assert len(lone.sampled_rows) % unit == 0
    assert lone.attention.num_rows == 1
    _, snapshots = run(halves, Policy.CONTINUOUS, 4, [request(f"r{i}", prompt_of(3 + i, i), 3 + i) for i in range(6)])
    assert all((snapshot.num_rows + snapshot.num_dummy_rows) % unit == 0 for snapshot in snapshots)
    assert max(snapshot.num_dummy_rows for snapshot in snapshots) < unit or unit == 1


@needs_halves
def test_half_the_bytes_are_read(halves: LoadedModel) -> None:
    assert halves.bytes_per_number == 4  # of the KV cache
    plain = tiny_model(FLOAT32)
    read = [sum(layer.weight_bytes for layer in linear_layers(some.network)) for some in (halves, plain)]  # type: ignore[arg-type]
    assert read[0] == read[1] / 2 > 0
