"""Whether a KV cache fits into the memory at hand, asked before it is taken.

Owns: the arithmetic and its sentence, and how much memory a device has left. Must not know: slots' contents, runs, pages.
A system that runs out of memory swaps for minutes, or ends the process without a word; a sentence is better.
"""

from __future__ import annotations

import psutil
import torch

ALWAYS_FITS_BYTES = 256_000_000  # what is `available` is the system's guess; so little is never refused because of it


def why_too_large(num_slots: int, num_positions: int, bytes_per_token: int, available_bytes: int | None) -> str | None:
    """Why a cache of so many slots and positions is not taken, with the arithmetic; None if it fits or nobody knows."""
    slot_bytes = num_positions * bytes_per_token
    need = num_slots * slot_bytes
    if available_bytes is None or need <= max(available_bytes, ALWAYS_FITS_BYTES):
        return None
    most = max(available_bytes, ALWAYS_FITS_BYTES) // slot_bytes
    fewer = f"take at most {most} slot{'' if most == 1 else 's'}, or " if most else "ask for "
    return (
        f"the KV cache does not fit: {num_slots:,} slots × {num_positions:,} positions × {bytes_per_token:,} bytes per "
        f"token = {_shown(need)}; {_shown(available_bytes)} are available; {fewer}shorter prompts and answers"
    )


def available_bytes(device: torch.device) -> int | None:
    """Memory that can be taken now; None where the device does not say."""
    if device.type == "cpu":
        return int(psutil.virtual_memory().available)
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(
            device
        )  # kept by torch, to be used again
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    return None


def _shown(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:,.2f} GB"
