"""What the line of a debugger's command says: numbers, options, a request.

Owns: that. Must not know: commands, sessions. What cannot be read raises DebugError with one sentence.
"""

from __future__ import annotations

import shlex
from enum import StrEnum
from typing import TypeVar

from batchviz.debug_run import DebugError
from batchviz.prefill import PrefillMode
from batchviz.runs import make_config
from batchviz.scenario import MAX_ID_CHARACTERS, MAX_LENGTH, MAX_PROMPT_CHARACTERS, ScenarioRequest, shown_text
from batchviz.scheduler import Policy
from batchviz.trace import RunConfig

Kind = TypeVar("Kind", bound=StrEnum)


def number(text: str, default: int | None = None) -> int:
    """A whole number, or the default where nothing is written. Raises DebugError."""
    cleaned = text.strip()
    if not cleaned and default is not None:
        return default
    if not (cleaned.isascii() and cleaned.isdigit() and len(cleaned) <= 9):
        raise DebugError(f"{shown_text(cleaned)} is not a whole number")
    return int(cleaned)


def optional(text: str | None, default: int | None) -> int | None:
    """The same for what may be left out."""
    return default if text is None else number(text)


def options_of(line: str, known: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """Words, and what was written as name=value. Raises DebugError for a name that nobody knows."""
    words: list[str] = []
    options: dict[str, str] = {}
    for piece in shlex.split(line):
        name, sign, value = piece.partition("=")
        if sign and name.isidentifier():
            if name not in known:
                raise DebugError(f"{name!r} is not an option here; there are {', '.join(known)}")
            options[name] = value
        else:
            words.append(piece)
    return words, options


def config_of(line: str, now: RunConfig) -> RunConfig:
    """The configuration that `fork` describes; what it leaves out stays as it is now. Raises DebugError or ValueError."""
    words, options = options_of(line, ("slots", "prefill", "tokens", "kv"))
    return make_config(
        _one_of(Policy, words[0], "a policy") if words else now.policy,
        number(options.get("slots", str(now.num_slots))),
        now.slot_capacity,
        prefill=_one_of(PrefillMode, options["prefill"], "a prefill mode") if "prefill" in options else now.prefill,
        max_batched_tokens=optional(options.get("tokens"), now.max_batched_tokens),
        kv_budget_tokens=optional(options.get("kv"), now.kv_budget_tokens),
    )


def _one_of(kinds: type[Kind], word: str, what: str) -> Kind:
    found = next((kind for kind in kinds if kind == word), None)
    if found is None:
        raise DebugError(f"{shown_text(word)} is not {what}; there are {', '.join(kinds)}")
    return found


def request_of(line: str, arrival: float) -> ScenarioRequest:
    """The request that `inject` describes. Raises DebugError."""
    words, options = options_of(line, ("prompt", "output", "max"))
    if not words or len(words) > 2:
        raise DebugError('inject needs an id: `inject x prompt=20 output=5`, or `inject x "Say hi." max=16`')
    if len(words[0]) > MAX_ID_CHARACTERS or any(len(word) > MAX_PROMPT_CHARACTERS for word in words):
        raise DebugError(f"an id has at most {MAX_ID_CHARACTERS} characters, a prompt {MAX_PROMPT_CHARACTERS:,}")
    output = optional(options.get("output"), None)
    limit = number(options.get("max", "")) if "max" in options else (output or 64)
    if not 1 <= limit <= MAX_LENGTH or (output is not None and output < 1):
        raise DebugError(f"a request may have 1 to {MAX_LENGTH:,} tokens")
    prompt = words[1] if len(words) == 2 else None
    length = optional(options.get("prompt"), 8) if prompt is None else None
    return ScenarioRequest(words[0], limit, prompt=prompt, prompt_tokens=length, output_tokens=output, arrival=arrival)
