"""Links: whatever is encoded decodes equal, and whatever a stranger puts into one raises nothing."""

from __future__ import annotations

import base64
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.link import (
    MAX_OWN_CHARACTERS,
    SPEEDS,
    THEMES,
    PaneChoice,
    View,
    checked,
    panes_from_text,
    panes_to_text,
    scenario_from_text,
    scenario_to_text,
    view_from_params,
    view_to_params,
)
from batchviz.prefill import PrefillMode
from batchviz.presets import PRESET_NAMES, SCRIPTED_PRESET_NAMES, load_scenario
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from tests.test_scenario_properties import scenarios


@st.composite
def panes(draw: st.DrawFn) -> PaneChoice:
    slots = draw(st.integers(1, 64))
    prefill = draw(st.sampled_from(PrefillMode))
    return checked(
        PaneChoice(
            draw(st.sampled_from(Policy)),
            slots,
            prefill,
            draw(st.integers(64, 10_000)) if prefill is PrefillMode.CHUNKED else None,
            draw(st.none() | st.integers(1, 100_000)),
            draw(st.sampled_from((0, 1, 2.5, 40))),
        )
    )


VIEWS = st.builds(
    View,
    preset=st.none() | st.sampled_from(PRESET_NAMES),
    panes=st.lists(panes(), max_size=3).map(tuple),
    chart=st.none() | st.sampled_from(("queue", "kv-memory")),
    step=st.none() | st.integers(0, 10_000_000),
    speed=st.none() | st.sampled_from(SPEEDS),
    theme=st.none() | st.sampled_from(THEMES),
)


@given(VIEWS)
def test_a_view_survives_its_link(view: View) -> None:
    params = view_to_params(view)
    assert params is not None
    assert view_from_params(params) == view


@given(scenarios())
@settings(deadline=None, max_examples=60)
def test_a_scenario_of_one_s_own_survives_while_it_fits(scenario: Scenario) -> None:
    text = scenario_to_text(scenario)
    if text is not None:
        assert len(text) <= MAX_OWN_CHARACTERS
        assert scenario_from_text(text) == scenario
        params = view_to_params(View(own=scenario, step=3))
        assert params is not None
        assert view_from_params(params) == View(own=scenario, step=3)


@pytest.mark.parametrize("name", [*PRESET_NAMES, *SCRIPTED_PRESET_NAMES])
def test_every_preset_that_somebody_changes_would_fit(name: str) -> None:
    assert scenario_to_text(load_scenario(name)) is not None


def test_a_scenario_that_is_too_long_goes_as_a_file() -> None:
    prompt = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz ", k=8_000))
    long = Scenario("long", "Long", (ScenarioRequest("a", 5, prompt=prompt),))
    assert scenario_to_text(long) is None
    assert view_to_params(View(own=long)) is None


KEYS = st.sampled_from(("scenario", "preset", "panes", "chart", "step", "speed", "theme", "other"))


@given(st.dictionaries(KEYS, st.text(max_size=80)))
def test_garbage_never_raises(params: dict[str, str]) -> None:
    view = view_from_params(params)
    again = view_to_params(view)
    assert again is not None
    assert view_from_params(again) == view


@given(st.binary(max_size=300))
def test_garbage_in_place_of_a_scenario_never_raises(content: bytes) -> None:
    for packed in (content, zlib.compress(content)):
        assert scenario_from_text(base64.urlsafe_b64encode(packed).decode()) is None


def test_a_link_unpacks_to_little_or_to_nothing() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 1_000_000, 9)).decode()
    assert len(bomb) < MAX_OWN_CHARACTERS
    assert scenario_from_text(bomb) is None


@pytest.mark.parametrize(
    "text",
    [
        "static",
        "static-0",
        "static-65",
        "best-4",
        "static-4-chunked",
        "static-4-chunked-b3",
        "static-4-b64",
        "static-4-k0",
        "static-4,,continuous-4",
        "static-1,static-1,static-1,static-1",
        "static-٤",
    ],
)
def test_panes_that_cannot_be_are_no_panes(text: str) -> None:
    assert panes_from_text(text) == ()


def test_panes_read_as_they_are_written() -> None:
    text = "sequential-1,static-4-exclusive-k900-t2.5,continuous-8-chunked-b64"
    assert panes_to_text(panes_from_text(text)) == text
