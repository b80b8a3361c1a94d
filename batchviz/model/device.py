"""Which device computes, and in which number format.

Owns: what is found and what is refused. Must not know: models.
"""

from __future__ import annotations

from types import MappingProxyType

import torch

DTYPES = MappingProxyType({"float32": torch.float32, "bfloat16": torch.bfloat16})
DEVICES = ("cuda", "mps", "cpu")


def choose_device(name: str | None = None) -> torch.device:
    """The device asked for, else the first of cuda, mps, cpu that is there. Raises ValueError."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name is None:
        return torch.device(next(kind for kind in DEVICES if available[kind]))
    if name not in available:
        raise ValueError(f"device {name!r} is unknown; there are {', '.join(DEVICES)}")
    if not available[name]:
        raise ValueError(f"this machine, or this build of torch, has no device {name!r}")
    return torch.device(name)


def choose_dtype(name: str | None, device: torch.device) -> torch.dtype:
    """The number format asked for, else the one the device does well. Raises ValueError.

    A GPU that knows bfloat16 takes it. Processors take float32: with bfloat16 a step is at best 1.3 times as fast, and
    some of the default model's answers become others than in the recorded runs.
    """
    if name is None:
        native = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if native else torch.float32
    if name not in DTYPES:
        raise ValueError(f"dtype {name!r} is unknown; there are {', '.join(DTYPES)}")
    return DTYPES[name]
