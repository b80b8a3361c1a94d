"""Two traces beside each other, up to the first difference.

Owns: `first_difference`. Must not know: files, terminals. Times are not compared: they are never the same twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from batchviz.explain import decisions
from batchviz.ledger import Facts, Ledger
from batchviz.scheduler import Admission
from batchviz.trace import StepSnapshot, Trace


class Difference(NamedTuple):
    """The first step in which two runs are not the same."""

    step: int
    slot: int | None  # None where the difference is not in a slot
    request_id: str | None
    what: str
    decided: tuple[tuple[str, ...], tuple[str, ...]]  # by each: what the other did not decide so


def first_difference(one: Trace, other: Trace) -> Difference | None:
    """None if both decided and sampled the same to the end."""
    ledgers = (Ledger(), Ledger())
    for step in range(max(len(one.steps), len(other.steps))):
        if step >= min(len(one.steps), len(other.steps)):
            shorter, longer = sorted((len(one.steps), len(other.steps)))
            what = f"one run ends after {shorter:,} steps, the other goes on to {longer:,}"
            return Difference(step, None, None, what, ((), ()))
        pair = (ledgers[0].append(one.steps[step]), ledgers[1].append(other.steps[step]))
        found = next(_differences(*pair), None)
        if found is not None:
            return found._replace(decided=_decided(one, other, pair))
    return None


def _differences(one: Facts, other: Facts) -> Iterator[Difference]:
    """In the order in which a step decides."""
    for name, words in (("arrived", "arrive"), ("rejected", "are rejected"), ("aborted", "are aborted")):
        yield from _lists(one.snapshot, other.snapshot, name, words)
    for first, second in zip_longest(one.snapshot.admitted, other.snapshot.admitted):
        if first != second:
            who = first or second
            what = f"{_admission(first)} in one, {_admission(second)} in the other"
            yield Difference(one.snapshot.step, who.slot, who.request_id, what, ((), ()))
    if len(one.snapshot.slots) != len(other.snapshot.slots):
        what = f"one has {len(one.snapshot.slots)} slots, the other {len(other.snapshot.slots)}"
        yield Difference(one.snapshot.step, None, None, what, ((), ()))
    for number, (first, second) in enumerate(zip(one.snapshot.slots, other.snapshot.slots, strict=False)):
        for field in ("request_id", "phase", "position", "num_tokens", "token_id", "text"):
            left, right = getattr(first, field), getattr(second, field)
            if left != right:
                what = f"slot {number}, {field.replace('_', ' ')}: {left!s} in one, {right!s} in the other"
                yield Difference(one.snapshot.step, number, first.request_id or second.request_id, what, ((), ()))
    for name, words in (("finished", "finish"), ("delivered", "are delivered")):
        yield from _lists(one.snapshot, other.snapshot, name, words)


def _lists(one: StepSnapshot, other: StepSnapshot, name: str, words: str) -> Iterator[Difference]:
    mine, theirs = ([_id(entry) for entry in getattr(snapshot, name)] for snapshot in (one, other))
    if mine != theirs:
        who = next((entry for entry in [*mine, *theirs] if (entry in mine) != (entry in theirs)), None)
        what = f"{', '.join(mine) or 'none'} {words} in one, {', '.join(theirs) or 'none'} in the other"
        yield Difference(one.step, None, who, what, ((), ()))


def _id(entry: object) -> str:
    return entry if isinstance(entry, str) else str(getattr(entry, "request_id"))  # noqa: B009


def _admission(admission: Admission | None) -> str:
    if admission is None:
        return "nobody more is admitted"
    return f"{admission.request_id} is admitted to slot {admission.slot}"


def _decided(one: Trace, other: Trace, pair: tuple[Facts, Facts]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    mine, theirs = tuple(decisions(one, pair[0])), tuple(decisions(other, pair[1]))
    return tuple(line for line in mine if line not in theirs), tuple(line for line in theirs if line not in mine)
