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
    """The number format asked for, else bfloat16 where the processor computes in it natively. Raises ValueError."""
    if name is None:
        return torch.bfloat16 if _has_native_bfloat16(device) else torch.float32
    if name not in DTYPES:
        raise ValueError(f"dtype {name!r} is unknown; there are {', '.join(DTYPES)}")
    return DTYPES[name]


def _has_native_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type != "cpu":
        return False
    # torch says this in functions without a promise, so each is asked only if it is there
    questions = ("_is_avx512_bf16_supported", "_is_amx_tile_supported", "_is_arm_bf16_supported")
    return any(bool(getattr(torch.cpu, question, bool)()) for question in questions)
