"""How much one viewer may ask of the server: all of it in one place, with defaults that a file may change.

Owns: Limits, and reading them from the file that the environment names. Must not know: pages, queues, scenarios.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

LIMITS_VARIABLE = "BATCHVIZ_LIMITS"
MOST = 1_000_000  # of anything: no limit is meant to be without a limit
MAX_FILE_BYTES = 10_000


class LimitsError(ValueError):
    """The limits cannot be read. The message is one sentence."""


@dataclass(frozen=True)
class Limits:
    """Whole numbers from 1. A file names those that are to differ, one `name: number` a line."""

    max_requests: int = 16  # of one live run
    max_tokens: int = 256  # of one answer
    max_prompt_characters: int = 4_000  # of one prompt
    max_arrival: int = 500  # steps, or seconds, after which no request arrives
    max_messages: int = 8  # that may join one chat
    max_message_characters: int = 400
    max_runs_per_viewer: int = 1  # queued or running
    max_queued: int = 32  # runs of everybody that wait


def read_limits(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits of the file that `BATCHVIZ_LIMITS` names, the defaults without one. Raises LimitsError."""
    name = environment.get(LIMITS_VARIABLE, "").strip()
    return limits_from_file(Path(name)) if name else Limits()


def limits_from_file(path: Path) -> Limits:
    """Limits from a YAML (or JSON) file. Raises LimitsError with a sentence that names the file and what is wrong."""
    try:
        content = path.read_bytes()
        if len(content) > MAX_FILE_BYTES:
            raise LimitsError(f"{path.name} has {len(content):,} bytes; limits fit into {MAX_FILE_BYTES:,}")
        plain = yaml.safe_load(content.decode("utf-8"))
    except OSError as error:
        raise LimitsError(f"{path.name}: the limits cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise LimitsError(f"{path.name} is no YAML; write one `name: number` a line") from None
    return limits_from_plain({} if plain is None else plain, path.name)


def limits_from_plain(plain: Any, where: str) -> Limits:
    """Limits from what a file said. Raises LimitsError with one sentence."""
    if not isinstance(plain, dict):
        raise LimitsError(f"{where} must have one `name: number` a line")
    known = [field.name for field in fields(Limits)]
    for name, value in plain.items():
        if name not in known:
            raise LimitsError(f"{where}: {str(name)[:40]!r} is no limit; there are {', '.join(known)}")
        if type(value) is not int or not 1 <= value <= MOST:
            raise LimitsError(f"{where}: {name} must be a whole number from 1 to {MOST:,}, not {str(value)[:40]!r}")
    return Limits(**plain)
