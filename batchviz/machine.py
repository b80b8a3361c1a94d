"""Which machine this is, in one line, for the traces that are measured on it.

Owns: `describe_machine`. Must not know: torch, runs, pages. It names the processor, never the host or the user.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    """For example "AMD EPYC, 2 cores, Linux x86_64"."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{_processor()}, {cores} core{'' if cores == 1 else 's'}, {platform.system()} {platform.machine()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"
