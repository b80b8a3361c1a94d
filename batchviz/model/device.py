"""Which device computes.

Owns: what is found and what is refused. Must not know: models, number formats.
"""

from __future__ import annotations

import torch

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
