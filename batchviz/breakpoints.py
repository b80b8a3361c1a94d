"""Where a run should stop: conditions written as a line of text, each with a sentence for when it holds.

Owns: their grammar and when each hits. Must not know: sessions, engines, terminals.

An event (a request admitted, a token sampled) hits in the step in which it happens. A state (a slot held, a queue longer
than 3) hits in the step in which it begins, so that going forward and going back stop at the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from batchviz.ledger import Facts
from batchviz.request import FinishReason
from batchviz.scenario import joined_names, shown_text
from batchviz.trace import SlotPhase

ANY = "*"
Find = Callable[[Facts], Sequence[str]]
"""Looks at one step; whom the condition holds for: requests, slots, or the thing itself. Empty if it does not hold."""
Say = Callable[[Sequence[str], Facts], str]

FORMS = (
    "step 12",
    "arrived R, admitted R, first-token R, finished R, delivered R, aborted R   (R: a request, or *)",
    "slot 2 empty, slot 2 held, slot 2 stalled                                  (or slot *)",
    "waits R > 5          a request has waited longer than 5 steps",
    "queue empty, queue > 3",
    "free-slot            a slot is empty while somebody waits",
    'token 42, text "yes" in an answer',
    "reason stop          (or length, abort, error)",
    "kv > 500             KV positions used in all slots together",
    "several, joined by `and`, must hold in the same step",
)


class BreakpointError(ValueError):
    """A condition that cannot be read. The message is one sentence that says what would be right."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. A state begins for somebody for whom it did not hold a step before; an event just happens."""

    find: Find
    say: Say
    is_state: bool = False

    def has_news(self, before: Facts | None, found: Sequence[str]) -> bool:
        """Whether it holds for somebody for whom it did not hold a step before; `found` is for whom it holds now."""
        old = self.find(before) if self.is_state and before is not None else ()
        return any(subject not in old for subject in found)


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """`text` is what was written; of its conditions all must hold in a step, and something about them be new."""

    text: str
    conditions: tuple[Condition, ...]

    def hit(self, before: Facts | None, now: Facts) -> str | None:
        """What holds in this step that makes it stop; None if it does not. `before` is the step before, if any."""
        found = [condition.find(now) for condition in self.conditions]
        pairs = list(zip(self.conditions, found, strict=True))
        if not all(found) or not any(condition.has_news(before, subjects) for condition, subjects in pairs):
            return None
        return "; ".join(condition.say(subjects, now) for condition, subjects in pairs)


def parse_breakpoint(text: str) -> Breakpoint:
    """Raises BreakpointError."""
    pieces = [piece.strip() for piece in re.split(r"\band\b(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", text)]
    if not all(pieces):
        raise BreakpointError(f"{shown_text(text)} is not a condition; write one like `finished r3` or `queue > 2`")
    return Breakpoint(" ".join(text.split()), tuple(_parse_one(piece) for piece in pieces))


def _parse_one(text: str) -> Condition:
    for pattern, make in READERS:
        match = re.fullmatch(pattern, text)
        if match is not None:
            return make(*match.groups())
    word = text.split()[0]
    forms = [form for form in FORMS if word in re.findall(r"[\w-]+", form)]
    raise BreakpointError(
        f"{shown_text(text)} is not a condition"
        + (f"; with {word!r} one can say: {' '.join(forms[0].split())}" if forms else "; `help break` lists them")
    )


def _at(step: str) -> Condition:
    return Condition(
        lambda facts: [step] if facts.snapshot.step == int(step) else [], lambda who, _: f"this is step {step}"
    )


def _happens(kind: str, request: str) -> Condition:
    return Condition(
        lambda facts: [name for name in _named(kind, facts) if request in (ANY, name)],
        lambda who, _: f"{joined_names(who)} {EVENT_WORDS[kind]}",
    )


def _named(kind: str, facts: Facts) -> Sequence[str]:
    snapshot = facts.snapshot
    if kind == "admitted":
        return [admission.request_id for admission in snapshot.admitted]
    if kind == "finished":
        return [finish.request_id for finish in snapshot.finished]
    if kind == "first-token":
        return facts.first_tokens
    return {"arrived": snapshot.arrived, "delivered": snapshot.delivered, "aborted": snapshot.aborted}[kind]


def _slot(slot: str, phase: str) -> Condition:
    def find(facts: Facts) -> list[str]:
        shown = enumerate(facts.snapshot.slots)
        return [str(number) for number, one in shown if slot in (ANY, str(number)) and one.phase is SlotPhase(phase)]

    return Condition(find, lambda who, _: f"{_slots(who)} {phase}", is_state=True)


def _waits(request: str, steps: str) -> Condition:
    def find(facts: Facts) -> list[str]:
        return [name for name in facts.waiting_since if request in (ANY, name) and facts.waited(name) > int(steps)]

    return Condition(find, lambda who, _: f"{joined_names(who)} waited longer than {steps} steps", is_state=True)


def _queue(length: str) -> Condition:
    return Condition(
        lambda facts: ["queue"] if facts.num_waiting > int(length) else [],
        lambda _, facts: f"{facts.num_waiting} wait",
        is_state=True,
    )


def _queue_empty() -> Condition:
    return Condition(lambda facts: [] if facts.num_waiting else ["queue"], lambda *_: "nobody waits", is_state=True)


def _free_slot() -> Condition:
    return Condition(
        lambda facts: ["slots"] if facts.has_free_slot and facts.num_waiting else [],
        lambda *_: "a slot is free while somebody waits",
        is_state=True,
    )


def _token(token_id: str) -> Condition:
    return Condition(
        lambda facts: [slot.request_id or "" for slot in facts.snapshot.slots if slot.token_id == int(token_id)],
        lambda who, _: f"token {token_id} in the answer to {joined_names(who)}",
    )


def _text(words: str) -> Condition:
    return Condition(
        lambda facts: [slot.request_id or "" for slot in facts.snapshot.slots if words in (slot.text or "")],
        lambda who, _: f"{shown_text(words)} in the answer to {joined_names(who)}",
    )


def _reason(reason: str) -> Condition:
    def find(facts: Facts) -> list[str]:
        who = [finish.request_id for finish in facts.snapshot.finished if finish.reason is FinishReason(reason)]
        return [*who, *(facts.snapshot.aborted if reason == FinishReason.ABORT else ())]

    return Condition(find, lambda who, _: f"{joined_names(who)} ended with {reason}")


def _kv(positions: str) -> Condition:
    return Condition(
        lambda facts: ["kv"] if sum(facts.kv_used) > int(positions) else [],
        lambda _, facts: f"{sum(facts.kv_used):,} KV positions are used",
        is_state=True,
    )


def _slots(numbers: Sequence[str]) -> str:
    return f"slot {numbers[0]} is" if len(numbers) == 1 else f"slots {joined_names(numbers)} are"


EVENT_WORDS = MappingProxyType(
    {
        "arrived": "arrived",
        "admitted": "admitted",
        "first-token": "got its first token",
        "finished": "finished",
        "delivered": "delivered",
        "aborted": "aborted",
    }
)
WHO = r"(\*|\S+)"
READERS: tuple[tuple[str, Callable[..., Condition]], ...] = (
    (r"step (\d{1,9})", _at),
    (rf"({'|'.join(EVENT_WORDS)}) {WHO}", _happens),
    (r"slot (\*|\d{1,4}) (empty|held|stalled)", _slot),
    (rf"waits {WHO} ?> ?(\d{{1,9}})", _waits),
    (r"queue empty", _queue_empty),
    (r"queue ?> ?(\d{1,9})", _queue),
    (r"free-slot", _free_slot),
    (r"token (\d{1,9})", _token),
    (r'text "(.+)"', _text),
    (r"reason (stop|length|abort|error)", _reason),
    (r"kv ?> ?(\d{1,12})", _kv),
)
