"""A scenario says what it can be run with, and what no slot can hold is refused with the arithmetic."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from batchviz.scenario import Scenario, ScenarioError, ScenarioRequest, check_fits, is_printable, shown_text

WORDS = ScenarioRequest("words", max_tokens=8, prompt="Hello")
LENGTHS = ScenarioRequest("lengths", max_tokens=8, prompt_tokens=5, output_tokens=3)
OPEN_END = ScenarioRequest("open", max_tokens=8, prompt_tokens=5)


def test_a_scenario_and_its_requests_never_change() -> None:
    with pytest.raises(FrozenInstanceError):
        WORDS.max_tokens = 9  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Scenario("s", "s", (WORDS,)).num_slots = 9  # type: ignore[misc]


def test_exact_output_tokens_override_max_tokens() -> None:
    assert WORDS.max_output_tokens == 8
    assert LENGTHS.max_output_tokens == 3


def test_a_model_needs_every_requests_words_and_a_run_without_one_needs_every_length() -> None:
    def both(*requests: ScenarioRequest) -> tuple[bool, bool]:
        scenario = Scenario("s", "s", requests)
        return scenario.has_words, scenario.has_exact_lengths

    assert both(WORDS) == (True, False)
    assert both(LENGTHS) == (False, True)
    assert both(WORDS, LENGTHS) == (False, False)
    assert both(LENGTHS, OPEN_END) == (False, False)


def test_a_prompt_fits_if_one_token_of_an_answer_fits_behind_it() -> None:
    check_fits(1023, WORDS, 1024)  # the engine rejects it later if max_tokens do not fit


@pytest.mark.parametrize(
    ("num_prompt_tokens", "slot_capacity", "arithmetic"),
    [
        (
            1024,
            1024,
            "a prompt of 1,024 tokens, so with one output token it needs 1,025 KV positions and a slot has 1,024",
        ),
        (
            9,
            8,
            "needs 10 KV positions and a slot has 8; shorten the prompt to at most 7 tokens or raise the slot capacity",
        ),
    ],
)
def test_a_prompt_that_fills_a_slot_is_refused_with_the_arithmetic(
    num_prompt_tokens: int, slot_capacity: int, arithmetic: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        check_fits(num_prompt_tokens, WORDS, slot_capacity)
    assert str(caught.value).startswith("request 'words' has a prompt of ")
    assert arithmetic in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "'plain'"),
        ("\x1b[31mred\n", "'\\x1b[31mred\\n'"),
        ("\u202egnp.exe", "'\\u202egnp.exe'"),
        ("\ud800", "'\\ud800'"),
        ("é 晋 😀", "'é 晋 😀'"),
        ("x" * 41, "'" + "x" * 39 + "…'"),
    ],
)
def test_a_strangers_text_is_safe_to_print(text: str, shown: str) -> None:
    assert shown_text(text) == shown


def test_emoji_with_joiners_are_printable_and_terminal_codes_are_not() -> None:
    assert all(map(is_printable, "👩\u200d🍳 café\u00a0!"))
    assert not any(map(is_printable, "\x00\x1b\n\t\x7f\x9b\u2028\u202e\u2066\ud800"))


def test_scenarios_load_no_model_and_no_page() -> None:
    code = (
        "import sys, batchviz.presets as p; p.list_presets(); print({'torch', 'streamlit', 'numpy'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "set()\n"
