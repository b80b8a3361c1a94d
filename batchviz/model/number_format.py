"""In which number format a model is kept and calculated, and by which kind of linear layer.

Owns: the names, what is refused, and the choice where nobody makes one: a short timing, kept for this machine.
Must not know: models, slots, attention.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import TypeAlias

import torch
from torch import nn

from batchviz.machine import describe_machine
from batchviz.model.half_linear import HalfLinear, row_unit
from batchviz.model.linear import JoinedLinear, PackedLinear, can_pack

FLOAT32, BFLOAT16, FLOAT16_WEIGHTS = "float32", "bfloat16", "float16-weights"
DTYPES = MappingProxyType({FLOAT32: torch.float32, BFLOAT16: torch.bfloat16, FLOAT16_WEIGHTS: torch.float32})
"""The format of activations, of sums and of the KV cache. With `float16-weights` only linear layers are kept shorter."""

Linear: TypeAlias = type[PackedLinear] | type[JoinedLinear] | type[HalfLinear]

TIMINGS_FILE = "linear-layers.json"
TIMINGS_SCHEMA = "batchviz-linear-layers/1"
ROWS, WIDE, NARROW, LAYERS, REPEATS = 9, 3_072, 576, 6, 5  # a decode step of eight slots, more than a cache holds
FASTER = 0.9  # a format with shorter weights must take less than this share of the time


def choose_dtype(name: str | None, device: torch.device, timings: Path | None = None) -> str:
    """The number format asked for, else the one the device does well. Raises ValueError.

    A GPU that knows bfloat16 takes it. A processor keeps weights in float16 where a short timing finds that faster;
    `timings` is the folder in which it is kept. It calculates in float32 all the same: in bfloat16, some of the default
    model's answers become others.
    """
    if name is None:
        if device.type != "cpu":
            native = device.type == "cuda" and torch.cuda.is_bf16_supported()
            return BFLOAT16 if native else FLOAT32
        return _fastest(timings)
    if name not in DTYPES:
        raise ValueError(f"dtype {name!r} is unknown; there are {', '.join(DTYPES)}")
    if name == FLOAT16_WEIGHTS and (device.type != "cpu" or row_unit() is None):
        raise ValueError(f"dtype {name!r} cannot be had here: it needs torch on an x86 processor; say float32")
    return name


def linear_for(name: str, device: torch.device) -> Linear:
    """The kind of linear layer that this format has on this device."""
    if name == FLOAT16_WEIGHTS:
        return HalfLinear
    return PackedLinear if can_pack(device, DTYPES[name]) else JoinedLinear


def _fastest(timings: Path | None) -> str:
    """Of a processor. The timing is made once for a machine, a torch and a number of threads, so that the answer stays."""
    if row_unit() is None:
        return FLOAT32
    instructions = torch.backends.cpu.get_cpu_capability()  # processors of one name may differ in them
    key = f"{describe_machine()}, {instructions}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    place = None if timings is None else timings / TIMINGS_FILE
    known = None if place is None else _read(place, key)
    if known is None:
        known = {name: _step_s(linear_for(name, torch.device("cpu"))) for name in (FLOAT32, FLOAT16_WEIGHTS)}
        if place is not None:
            _write(place, key, known)
    return FLOAT16_WEIGHTS if known[FLOAT16_WEIGHTS] < FASTER * known[FLOAT32] else FLOAT32


def _step_s(kind: Linear) -> float:
    """Seconds that some layers take for the rows of a small batch, the best of some tries."""
    weights = torch.linspace(-1, 1, WIDE * NARROW).reshape(WIDE, NARROW)
    layers = [kind(_layer(weights + index)) for index in range(LAYERS)]
    rows = torch.ones(1, ROWS, NARROW)
    return min(_seconds(lambda: [layer(rows) for layer in layers]))


def _layer(weight: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight, requires_grad=False)
    return layer


def _seconds(work: Callable[[], object]) -> Iterator[float]:
    with torch.inference_mode():
        for _ in range(REPEATS):
            started_s = perf_counter()
            work()
            yield perf_counter() - started_s


def _read(place: Path, key: str) -> dict[str, float] | None:
    """What was found before. Anything else in that place is as good as nothing."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(place.read_text(encoding="utf-8"))
        if kept["schema"] == TIMINGS_SCHEMA and kept["machine"] == key:
            return {name: float(kept["seconds"][name]) for name in (FLOAT32, FLOAT16_WEIGHTS)}
    return None


def _write(place: Path, key: str, seconds: dict[str, float]) -> None:
    """For next time. A folder that cannot be written to costs a short timing at each start, and nothing else."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": TIMINGS_SCHEMA, "machine": key, "seconds": seconds}, indent=1)
        place.write_text(text + "\n", encoding="utf-8")
