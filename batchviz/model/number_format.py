"""In which number format a model is kept and calculated, and by which kind of linear layer.

Owns: the names, what is refused, and the choice where nobody makes one: a short timing, kept for this machine.
Must not know: models, slots, attention.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import TypeAlias

import torch
from torch import nn

from batchviz.machine import describe_machine
from batchviz.model.half_linear import HalfLinear, row_unit
from batchviz.model.linear import JoinedLinear, PackedLinear, SideBySide, can_pack

FLOAT32, BFLOAT16, FLOAT16_WEIGHTS = "float32", "bfloat16", "float16-weights"
DTYPES = MappingProxyType({FLOAT32: torch.float32, BFLOAT16: torch.bfloat16, FLOAT16_WEIGHTS: torch.float32})
"""The format of activations, of sums and of the KV cache. With `float16-weights` only linear layers are kept shorter."""

LinearKind: TypeAlias = type[SideBySide]

Timing: TypeAlias = dict[str, float]
"""Seconds by name of a format."""

TIMINGS_FILE = "linear-layers.json"
TIMINGS_SCHEMA = "batchviz-linear-layers/1"
MACHINES = 16  # that one file knows at most: a folder may travel
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


def linear_for(name: str, device: torch.device) -> LinearKind:
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
    known = {} if place is None else _read(place)
    if key not in known:
        measured = _steps_s({name: linear_for(name, torch.device("cpu")) for name in (FLOAT32, FLOAT16_WEIGHTS)})
        known = dict([*known.items(), (key, measured)][-MACHINES:])
        if place is not None:
            _write(place, known)
    return FLOAT16_WEIGHTS if known[key][FLOAT16_WEIGHTS] < FASTER * known[key][FLOAT32] else FLOAT32


def _steps_s(kinds: Mapping[str, LinearKind]) -> Timing:
    """Seconds that some layers of each kind take for the rows of a small batch, in turns; the best of some tries."""
    weights = torch.linspace(-1, 1, WIDE * NARROW).reshape(WIDE, NARROW)
    layers = {name: [kind(_layer(weights + index)) for index in range(LAYERS)] for name, kind in kinds.items()}
    rows = torch.ones(1, ROWS, NARROW)
    best: Timing = {}
    with torch.inference_mode():
        for _ in range(REPEATS):
            for name, some in layers.items():
                started_s = perf_counter()
                for layer in some:
                    layer(rows)
                best[name] = min(best.get(name, inf), perf_counter() - started_s)
    return best


def _layer(weight: torch.Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight, requires_grad=False)
    return layer


def _read(place: Path) -> dict[str, Timing]:
    """What was found before, by machine. Anything else in that place is as good as nothing."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(place.read_text(encoding="utf-8"))
        if kept["schema"] == TIMINGS_SCHEMA:
            return {
                machine: {name: float(seconds[name]) for name in (FLOAT32, FLOAT16_WEIGHTS)}
                for machine, seconds in kept["seconds"].items()
            }
    return {}


def _write(place: Path, known: Mapping[str, Timing]) -> None:
    """For next time. A folder that cannot be written to costs a short timing at each start, and nothing else."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": TIMINGS_SCHEMA, "seconds": known}, indent=1)
        place.write_text(text + "\n", encoding="utf-8")
