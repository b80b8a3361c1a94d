"""Small pieces of English: a phrase is text with requests in it, which are shown as letters.

Owns: Part, Phrase and how lists, counts and exactness are said. Must not know: traces, steps, policies.
"""

from __future__ import annotations

from collections.abc import Sequence

from batchviz.timeline import letter

Part = str | int  # text, or the index of a request
Phrase = tuple[Part, ...]
MAX_NAMED = 4  # more requests than this are counted instead of named


def plain(parts: Sequence[Part]) -> str:
    """The phrase as a screen reader says it, each request by its letter.

    >>> plain(("The answers ", 0, " and ", 27, " are finished."))
    'The answers A and AB are finished.'
    """
    return "".join(part if isinstance(part, str) else letter(part) for part in parts)


def length(parts: Sequence[Part]) -> int:
    return len(plain(parts))


def listed(indices: Sequence[int]) -> Phrase:
    """A, B and C; with more than four, the first three and how many others.

    >>> plain(listed([0, 1, 2])), plain(listed(range(8)))
    ('A, B and C', 'A, B, C and 5 more')
    """
    names: list[Part] = list(indices) if len(indices) <= MAX_NAMED else list(indices[: MAX_NAMED - 1])
    if len(indices) > MAX_NAMED:
        names.append(f"{len(indices) - MAX_NAMED + 1} more")
    phrase: list[Part] = []
    for place, name in enumerate(names):
        if place:
            phrase.append(" and " if place == len(names) - 1 else ", ")
        phrase.append(name)
    return tuple(phrase)


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "step"), count(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def exactness(exact: bool | None, *, recorded: bool = False) -> str:
    """What the check found that runs whenever a model is loaded.

    >>> exactness(True), exactness(None, recorded=True)
    ('bit-identical across policies on this machine: yes', 'bit-identical across policies where it was recorded: not checked')
    """
    where = "where it was recorded" if recorded else "on this machine"
    return f"bit-identical across policies {where}: {'not checked' if exact is None else 'yes' if exact else 'no'}"
