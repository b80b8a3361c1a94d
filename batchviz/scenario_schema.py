"""What each key of a scenario file may hold, and the sentence that says what would be right.

Owns: the keys and their rules, checked by pydantic, strictly. Must not know: files, YAML, JSON, presets, engines.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from batchviz.prefill import PrefillMode
from batchviz.scenario import (
    DEFAULT_NUM_SLOTS,
    DEFAULT_POLICIES,
    MAX_ARRIVAL,
    MAX_GROUP_TIMEOUT,
    MAX_ID_CHARACTERS,
    MAX_LENGTH,
    MAX_LOOK_FOR_CHARACTERS,
    MAX_PROMPT_CHARACTERS,
    MAX_REQUESTS,
    MAX_SLOTS,
    MAX_TITLE_CHARACTERS,
    MAX_TOKENS_TOGETHER,
    ArrivalUnitName,
    is_printable,
    shown_text,
)
from batchviz.scheduler import Policy
from batchviz.workload_generator import ArrivalsName, read_lengths

Path = tuple[str | int, ...]  # of a value inside a file: ("requests", 2, "max_tokens")

# Line breaks, tabs and the marks of right-to-left writing are fine in a prompt; control characters, half characters not.
NOT_IN_PROMPT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
POLICY_NAMES = ", ".join(Policy)

MAX_RATE = 1_000_000
MAX_SEED = 2**63 - 1
LENGTHS_RULE = (
    f"a whole number from 1 to {MAX_LENGTH:,}, or {{uniform: [least, most]}}, or {{exponential: mean, max: most}}"
)

# What each key may hold, as the end of the sentence "... it must be".
RULES: Mapping[str, str] = MappingProxyType(
    {
        "name": f"one line of 1 to {MAX_ID_CHARACTERS} printable characters",
        "title": f"one line of 1 to {MAX_TITLE_CHARACTERS} printable characters",
        "look_for": f"one line of at most {MAX_LOOK_FOR_CHARACTERS} printable characters",
        "num_slots": f"a whole number from 1 to {MAX_SLOTS}",
        "policies": f"a list of one or more of {POLICY_NAMES}, each at most once",
        "arrival_unit": "the word steps or the word seconds",
        "prefill": f"one of {', '.join(PrefillMode)}",
        "max_batched_tokens": f"a whole number from 1 to {MAX_TOKENS_TOGETHER:,}",
        "kv_budget_tokens": f"a whole number from 1 to {MAX_TOKENS_TOGETHER:,}",
        "group_timeout": f"a number from 0 to {MAX_GROUP_TIMEOUT:,}, in the unit of the arrivals",
        "requests": f"a list of 1 to {MAX_REQUESTS:,} requests, each with an id, a prompt and max_tokens",
        "generate": "a mapping with requests, arrivals, prompt_tokens and output_tokens",
        "generate.requests": f"a whole number from 1 to {MAX_REQUESTS:,}",
        "generate.arrivals": "the word poisson or the word burst",
        "generate.rate": f"a number of requests per step (or second) above 0, at most {MAX_RATE:,}",
        "generate.burst": f"a whole number of requests from 1 to {MAX_REQUESTS:,}",
        "generate.prompt_tokens": LENGTHS_RULE,
        "generate.output_tokens": LENGTHS_RULE,
        "generate.seed": f"a whole number from 0 to {MAX_SEED:,}",
        "id": f"one line of 1 to {MAX_ID_CHARACTERS} printable characters",
        "prompt": f"text of 1 to {MAX_PROMPT_CHARACTERS:,} characters, not blank, without control characters",
        "prompt_tokens": f"a whole number from 1 to {MAX_LENGTH:,}",
        "max_tokens": f"a whole number from 1 to {MAX_LENGTH:,}",
        "output_tokens": f"a whole number from 1 to {MAX_LENGTH:,}",
        "arrival": f"a whole number of steps from 0 to {MAX_ARRIVAL:,}",
        "arrival in seconds": f"a number of seconds from 0 to {MAX_ARRIVAL:,}",
    }
)


def _one_line(text: str) -> str:
    if not all(map(is_printable, text)) or (text and not text.strip()):
        raise ValueError
    return text


def _prompt(text: str) -> str:
    if not text.strip() or NOT_IN_PROMPT.search(text):
        raise ValueError
    return text


def _policy(text: str) -> Policy:
    return Policy(text)


def _each_once(policies: list[Policy]) -> list[Policy]:
    if len(set(policies)) < len(policies):
        raise ValueError
    return policies


def _prefill(text: str) -> PrefillMode:
    return PrefillMode(text)


def _number(value: Any) -> float:
    """What JSON and YAML call a number: true is none."""
    if type(value) not in (int, float):
        raise ValueError
    return float(value)


def _above_zero(value: float) -> float:
    if not 0 < value <= MAX_RATE:  # NaN is in no range
        raise ValueError
    return value


def read_arrival(value: Any, unit: ArrivalUnitName) -> float | None:
    """An arrival in its unit: whole in steps, any number in seconds; None if it may not be."""
    right_kind = type(value) is int or (type(value) is float and unit == "seconds")
    return value if right_kind and 0 <= value <= MAX_ARRIVAL else None  # NaN is in no range


Length = Annotated[int, Field(ge=1, le=MAX_LENGTH)]
TokensTogether = Annotated[int, Field(ge=1, le=MAX_TOKENS_TOGETHER)]
Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARACTERS), AfterValidator(_one_line)]
Title = Annotated[str, Field(min_length=1, max_length=MAX_TITLE_CHARACTERS), AfterValidator(_one_line)]
LookFor = Annotated[str, Field(max_length=MAX_LOOK_FOR_CHARACTERS), AfterValidator(_one_line)]
Prompt = Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARACTERS), AfterValidator(_prompt)]
PolicyName = Annotated[str, AfterValidator(_policy)]
Policies = Annotated[list[PolicyName], Field(min_length=1, max_length=len(Policy)), AfterValidator(_each_once)]


class RequestFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    id: Id
    prompt: Prompt | None = None
    prompt_tokens: Length | None = None
    max_tokens: Length | None = None
    output_tokens: Length | None = None
    arrival: Any = 0  # depends on the unit: see read_arrival


class GenerateFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    requests: Annotated[int, Field(ge=1, le=MAX_REQUESTS)]
    arrivals: ArrivalsName
    prompt_tokens: Annotated[Any, AfterValidator(read_lengths)]
    output_tokens: Annotated[Any, AfterValidator(read_lengths)]
    rate: Annotated[Any, AfterValidator(_number), AfterValidator(_above_zero)] = None
    burst: Annotated[int, Field(ge=1, le=MAX_REQUESTS)] | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] = 0


class ScenarioFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    name: Id | None = None
    title: Title | None = None
    look_for: LookFor = ""
    num_slots: Annotated[int, Field(ge=1, le=MAX_SLOTS)] = DEFAULT_NUM_SLOTS
    policies: Policies = list(DEFAULT_POLICIES)
    arrival_unit: ArrivalUnitName = "steps"
    prefill: Annotated[str, AfterValidator(_prefill)] = PrefillMode.MIXED
    max_batched_tokens: TokensTogether | None = None
    kv_budget_tokens: TokensTogether | None = None
    group_timeout: Annotated[Any, AfterValidator(_number), Field(ge=0, le=MAX_GROUP_TIMEOUT, allow_inf_nan=False)] = 0
    requests: Annotated[list[RequestFields], Field(min_length=1, max_length=MAX_REQUESTS)] = []
    generate: GenerateFields | None = None


def sentence(kind: str, path: Path, value: Any) -> str:
    if kind == "string_unicode" and (not path or (path[0] == "requests" and len(path) == 2)):  # half a character as key
        kind, path = "invalid_key", (*path, value)
    field = next((part for part in reversed(path) if isinstance(part, str)), "requests")
    in_generate = len(path) > 1 and path[0] == "generate"
    if kind in ("extra_forbidden", "invalid_key"):
        model = RequestFields if path[0] == "requests" else GenerateFields if in_generate else ScenarioFields
        return _unknown_key(path, tuple(model.model_fields))
    if in_generate:
        field = f"generate.{path[1]}"
    if kind == "missing":
        return f"{shown_path(path)} is missing; it must be {RULES[field]}"
    if field == "requests" and len(path) == 2:
        return f"{shown_path(path)} is {shown_value(value)}; it must be a mapping with an id, a prompt and max_tokens"
    if kind == "too_long" and field == "requests":
        return f"requests has more than {MAX_REQUESTS:,} entries; it must be {RULES[field]}"
    rule = f"one of {POLICY_NAMES}" if field == "policies" and len(path) == 2 else RULES[field]
    quotes = " (put it in quotes)" if kind == "string_type" and isinstance(value, (bool, int, float)) else ""
    return f"{shown_path(path)} is {shown_value(value)}; it must be {rule}{quotes}"


def _unknown_key(path: Path, known: tuple[str, ...]) -> str:
    key = str(path[-1])
    close = difflib.get_close_matches(key[:40].lower(), known, n=1)
    advice = f"did you mean {close[0]}?" if close else f"known keys are {', '.join(known)}"
    return f"{shown_path(path)} is not a known key; {advice}"


def shown_path(path: Path) -> str:
    """Example: ("requests", 2, "max_tokens") becomes requests[2].max_tokens."""
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{shown_text(part)[1:-1]}" for part in path)
    return shown.removeprefix(".")


def shown_value(value: object) -> str:
    """A stranger's value in a few safe words."""
    match value:
        case None:
            return "empty"
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return "not a number (NaN)" if math.isnan(value) else "infinite"
        case int() | float():
            return str(value)
        case str():
            return _shown_string(value)
        case dict():
            return "a mapping"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return f"a {type(value).__name__}"


def _shown_string(text: str) -> str:
    if not text.strip():
        return "empty text" if not text else "blank text"
    bad = next((character for character in text if not is_printable(character)), None)
    if bad is not None and len(text) > 20:
        return f"text with the character U+{ord(bad):04X}"
    return f"the text {shown_text(text)}" + (f" ({len(text):,} characters)" if len(text) > 40 else "")
