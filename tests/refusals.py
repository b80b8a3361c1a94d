"""What tests of refusals share: the sentence, and what every such sentence must be."""

from __future__ import annotations

import time

import pytest

from batchviz.scenario import ScenarioError
from batchviz.scenario_file import parse_scenario

LIMIT_S = 1.0


def refusal(content: str | bytes, *, is_json: bool = False) -> str:
    """The sentence with which this is refused, within a second of processor time (the machine may be busy with something else)."""
    raw = content if isinstance(content, bytes) else content.encode()
    started = time.process_time()
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw, "bad.json" if is_json else "bad.yaml", is_json=is_json)
    assert time.process_time() - started < LIMIT_S
    return checked(str(caught.value))


def checked(message: str) -> str:
    """Every refusal is one line, of bearable length, safe to print."""
    assert all(character.isprintable() for character in message), repr(message)
    assert len(message) < 600
    return message
