"""What is asked of every policy alike: requests with words or with lengths alone, and the limits of what may be asked.

Owns: Scenario, ScenarioRequest, their limits, ScenarioError. Must not know: files, engines, models, tokenizers, pages.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from batchviz.prefill import PrefillMode
from batchviz.scheduler import Policy

MAX_REQUESTS = 2_000
MAX_LENGTH = 100_000  # tokens of one prompt, and of one answer
MAX_ARRIVAL = 1_000_000  # steps, or seconds
MAX_GROUP_TIMEOUT = 10_000  # steps, or seconds
MAX_TOKENS_TOGETHER = 10_000_000  # of a step's budget, and of all slots' KV positions
MAX_SLOTS = 64
MAX_ID_CHARACTERS = 64  # of a request's id, and of a scenario's name
MAX_TITLE_CHARACTERS = 200
MAX_LOOK_FOR_CHARACTERS = 500
MAX_PROMPT_CHARACTERS = 20_000
DEFAULT_NUM_SLOTS = 4
DEFAULT_POLICIES = (Policy.STATIC, Policy.CONTINUOUS)

ArrivalUnitName = Literal["steps", "seconds"]


class ScenarioError(ValueError):
    """A scenario that cannot be run. The message is one sentence: the place, what is wrong, what would be right."""


@dataclass(frozen=True, slots=True)
class ScenarioRequest:
    """One user's question before it is tokenized. It has either words or, for runs without a model, a length.

    Lengths are in tokens; `prompt_tokens` counts them after the chat template. `output_tokens`, where given, is exact
    and overrides `max_tokens`. `arrival` is in the scenario's arrival unit.
    """

    id: str
    max_tokens: int
    prompt: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    arrival: float = 0

    @property
    def max_output_tokens(self) -> int:
        """The most tokens the answer can have: `output_tokens` where it is exact, else `max_tokens`."""
        return self.max_tokens if self.output_tokens is None else self.output_tokens


@dataclass(frozen=True, slots=True)
class Scenario:
    """A workload and how it is best looked at: everything after `look_for` holds unless told otherwise.

    `arrival_unit` is what arrivals and `group_timeout` count. The last four mean what they mean in RunConfig.
    """

    name: str
    title: str
    requests: tuple[ScenarioRequest, ...]
    look_for: str = ""  # one sentence: what to look for
    num_slots: int = DEFAULT_NUM_SLOTS
    policies: tuple[Policy, ...] = DEFAULT_POLICIES
    arrival_unit: ArrivalUnitName = "steps"
    prefill: PrefillMode = PrefillMode.MIXED
    max_batched_tokens: int | None = None
    kv_budget_tokens: int | None = None
    group_timeout: float = 0

    @property
    def has_words(self) -> bool:
        """True if every request has a prompt, so that a model can answer it."""
        return all(request.prompt is not None for request in self.requests)

    @property
    def has_exact_lengths(self) -> bool:
        """True if every answer's length is given, so that it can be run without a model."""
        return all(request.output_tokens is not None for request in self.requests)


def check_fits(num_prompt_tokens: int, request: ScenarioRequest, slot_capacity: int) -> None:
    """Raises ScenarioError if the prompt alone fills a slot: no answer, however short, could ever be given.

    A prompt that fits with too many `max_tokens` is the engine's to reject, so that the requests behind it go on.
    """
    if num_prompt_tokens >= slot_capacity:
        raise ScenarioError(
            f"request {shown_text(request.id)} has a prompt of {num_prompt_tokens:,} tokens, so with one output token "
            f"it needs {num_prompt_tokens + 1:,} KV positions and a slot has {slot_capacity:,}; shorten the prompt to "
            f"at most {max(slot_capacity - 1, 0):,} tokens or raise the slot capacity"
        )


def free_id(word: str, taken: Container[str]) -> str:
    """A name for a request that nobody else has.

    >>> free_id("chat", {"chat-1", "chat-2"})
    'chat-3'
    """
    return next(name for number in count(1) if (name := f"{word}-{number}") not in taken)


def is_printable(character: str) -> bool:
    """True for what may stand in an id or a title: no control or bidirectional characters, no line breaks.

    The joiners inside emoji and the spaces of every script are welcome, though Python calls them unprintable.
    """
    return character.isprintable() or character in "\u200c\u200d" or unicodedata.category(character) == "Zs"


def joined_names(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> joined_names(["a"]), joined_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def shown_text(text: str, limit: int = 40) -> str:
    """Text from a stranger, safe to print: quoted, cut to `limit` characters, everything unprintable escaped.

    Example: the text "a", escape, "[31m" becomes 'a\\x1b[31m' with a visible backslash.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    safe = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in cut
    )
    return f"'{safe}'"
