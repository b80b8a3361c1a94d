"""How long a silent child may be silent: the watch over the model's process.

Owns: Patience. Must not know: processes, jobs, locks. A model that loads may have to be fetched first; one that runs says a
step at a time, and a step may read every prompt it was given.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

PATIENCE_S = 600.0  # with a question, and with a model that loads: it may have to be fetched first
HANGS_AFTER_S = 120.0  # a child that owes us something and says nothing for so long is ended
HANGS_AFTER_TOKEN_S = 0.02  # and for so much longer for every token of the prompts: one step may read them all
LOOKS_EVERY_S = 1.0  # whoever waits for an answer looks so often whether the child hangs


class Patience:
    """With one child; `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._heard_s = clock()  # when it last said anything, or was given something to do while it had nothing
        self._is_loaded = False  # whether it is known to have its model
        self._most_prompt_tokens = 0  # of one run that it was given

    def begin(self) -> None:
        """It was given something to do."""
        self._heard_s = self._clock()

    def hear(self, message: dict[str, Any]) -> None:
        """It said something."""
        self._heard_s = self._clock()
        headers = message["lines"][:1] if message["kind"] == "headers" else [message.get("header", "{}")]
        self._most_prompt_tokens = max([self._most_prompt_tokens, *map(_num_prompt_tokens, headers)])
        if message["kind"] in ("headers", "step") or (message["kind"] == "answer" and "refused" not in message):
            self._is_loaded = True

    def forget(self) -> None:
        """It is gone; the next one has everything before it."""
        self._is_loaded, self._most_prompt_tokens = False, 0

    def exhausted_s(self, *, is_loading: bool) -> float | None:
        """For how many seconds it has been silent, if that is too long; else None."""
        silent_s = self._clock() - self._heard_s
        knows_model = self._is_loaded and not is_loading
        allowed_s = HANGS_AFTER_S + HANGS_AFTER_TOKEN_S * self._most_prompt_tokens if knows_model else PATIENCE_S
        return silent_s if silent_s > allowed_s else None


def _num_prompt_tokens(header: str) -> int:
    requests = json.loads(header).get("scenario", {}).get("requests", [])
    return sum(int(request["num_prompt_tokens"]) for request in requests)
