"""What a user asked, and how far the engine has got with it.

Owns: Request, SamplingParams, Sequence and their two enums. Must not know: slots' neighbours, policies, models, clocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class SequenceStatus(StrEnum):
    """Where a sequence stands. Every sequence goes through these in this order, and never back."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


class FinishReason(StrEnum):
    """Why a sequence ended. The first four are vLLM's; `rejected` is said at submission, before any step."""

    STOP = "stop"  # it sampled an end token
    LENGTH = "length"  # it reached max_tokens (or its exact output_tokens)
    ABORT = "abort"  # its user left
    ERROR = "error"  # the runner could not compute a token for it
    REJECTED = "rejected"  # no slot could ever hold it


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a token is chosen. `temperature` 0 is greedy; the seed belongs to one request and depends on nobody else."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


GREEDY = SamplingParams()


@dataclass(frozen=True, slots=True)
class Request:
    """One user's question. Frozen: the same request is run under every policy.

    `arrival` is in steps (whole numbers) or in seconds, as the scenario says. `output_tokens`, where given, is exact:
    it overrides `max_tokens`, the end tokens are masked, and the sequence ends with `length`.
    """

    id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    arrival: float = 0
    stop_token_ids: frozenset[int] = frozenset()
    output_tokens: int | None = None
    sampling: SamplingParams = GREEDY

    @property
    def num_prompt_tokens(self) -> int:
        return len(self.prompt_token_ids)

    @property
    def max_output_tokens(self) -> int:
        """The most tokens this request can produce: `output_tokens` where it is exact, else `max_tokens`."""
        return self.max_tokens if self.output_tokens is None else self.output_tokens

    @property
    def num_reserved_tokens(self) -> int:
        """KV positions a slot must have for it: the prompt and every token it may still produce."""
        return self.num_prompt_tokens + self.max_output_tokens


@dataclass(slots=True, eq=False, repr=False)
class Sequence:
    """The engine's progress on one request. Only the scheduler changes it."""

    request: Request
    status: SequenceStatus = SequenceStatus.WAITING
    slot: int | None = None
    admission: int = 0  # how many were admitted before it
    num_computed_tokens: int = 0  # positions whose keys and values are in the slot's KV cache
    output_token_ids: list[int] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    user_left: bool = False  # aborted: nobody is there to take the answer
    num_prompt_tokens: int = field(init=False)  # the request's, at hand: every step asks for them
    max_output_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        self.num_prompt_tokens = self.request.num_prompt_tokens
        self.max_output_tokens = self.request.max_output_tokens

    def __repr__(self) -> str:
        place = "" if self.slot is None else f" in slot {self.slot}"
        read = f"{self.num_computed_tokens} positions computed"
        return f"<{self.request.id} {self.status}{place}: {read}, {len(self.output_token_ids)} of {self.max_output_tokens} tokens>"

    @property
    def is_prefilling(self) -> bool:
        """True until the whole prompt is in the KV cache."""
        return self.num_computed_tokens < self.num_prompt_tokens

    @property
    def is_deliverable(self) -> bool:
        """True if there is an answer and somebody to take it."""
        return self.finish_reason in (FinishReason.STOP, FinishReason.LENGTH) and not self.user_left

    def append(self, token_id: int) -> None:
        """Takes one sampled token and finishes if it ends the answer.

        The end token is asked for first: an answer that ends exactly at `max_tokens` stopped by itself.
        """
        self.output_token_ids.append(token_id)
        if self.request.output_tokens is None and token_id in self.request.stop_token_ids:
            self.finish(FinishReason.STOP)
        elif len(self.output_token_ids) >= self.max_output_tokens:
            self.finish(FinishReason.LENGTH)

    def finish(self, reason: FinishReason) -> None:
        """Ends it. A reason once given stays: an abort after the last token does not rewrite history."""
        if self.finish_reason is None:
            self.finish_reason = reason
            self.status = SequenceStatus.FINISHED
