"""Whatever is written reads back equal, and whatever a stranger sends raises nothing but a ScenarioError."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.prefill import PrefillMode
from batchviz.scenario import MAX_LENGTH, Scenario, ScenarioError, ScenarioRequest
from batchviz.scenario_file import dump_scenario, parse_scenario, scenario_from_data
from batchviz.scheduler import Policy
from tests.refusals import checked

GOOD = "title: Two chats\nrequests:\n  - id: A\n    prompt: 'Hello'\n    max_tokens: 8\n  - {id: B, prompt_tokens: 9, output_tokens: 3}\n"

LINE = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Zl", "Zp")) | st.sampled_from("'\":#-,[]{}&*!|>%@`")
)
NAMES = LINE.filter(str.strip) | st.sampled_from(
    ["no", "null", "~", "1e3", "3", "0.5", ".nan", "true", "- a", "a: b", "="]
)
PROMPTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C",)) | st.sampled_from("\n\r\t\u200d"), max_size=60
)
LENGTHS = st.integers(1, MAX_LENGTH)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    unit = draw(st.sampled_from(("steps", "seconds")))
    num_slots, is_chunked = draw(st.integers(1, 64)), draw(st.booleans())
    ids = draw(st.lists(NAMES.map(lambda name: name[:64]).filter(str.strip), min_size=1, max_size=5, unique=True))
    requests = []
    for request_id in ids:
        prompt = draw(st.none() | PROMPTS.filter(str.strip) | NAMES)
        requests.append(
            ScenarioRequest(
                id=request_id,
                max_tokens=draw(LENGTHS),
                prompt=prompt,
                prompt_tokens=draw(LENGTHS) if prompt is None else None,
                output_tokens=draw(st.none() | LENGTHS),
                arrival=draw(
                    st.integers(0, 1_000_000) | (st.floats(0, 1_000_000) if unit == "seconds" else st.nothing())
                ),
            )
        )
    return Scenario(
        name=draw(NAMES.map(lambda name: name[:64]).filter(str.strip)),
        title=draw(NAMES.map(lambda name: name[:200]).filter(str.strip)),
        requests=tuple(requests),
        look_for=draw(st.just("") | NAMES.map(lambda name: name[:200]).filter(str.strip)),
        num_slots=num_slots,
        policies=tuple(draw(st.lists(st.sampled_from(Policy), min_size=1, max_size=3, unique=True))),
        arrival_unit=unit,  # type: ignore[arg-type]
        prefill=PrefillMode.CHUNKED
        if is_chunked
        else draw(st.sampled_from((PrefillMode.MIXED, PrefillMode.EXCLUSIVE))),
        max_batched_tokens=draw(st.integers(num_slots, 10_000_000)) if is_chunked else None,
        kv_budget_tokens=draw(st.none() | st.integers(1, 10_000_000)),
        group_timeout=draw(st.integers(0, 10_000) | st.floats(0, 10_000)),
    )


@given(scenarios())
@settings(deadline=None)
def test_a_dumped_scenario_reads_back_equal(scenario: Scenario) -> None:
    assert parse_scenario(dump_scenario(scenario).encode(), "x.yaml", is_json=False) == scenario


KEYS = st.sampled_from(["requests", "id", "prompt", "max_tokens", "arrival", "num_slots", "policies", "name", "\ud800"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | KEYS, inner, max_size=4),
    max_leaves=12,
)
YAML_TEXTS = st.lists(
    st.sampled_from(["\n", "  ", "- ", ": ", "a", "[", "]", "{", "}", "&a ", "*a", "!!x ", "'", '"', "|", "#"])
)


def reads_or_refuses(content: bytes, is_json: bool) -> None:
    try:
        parse_scenario(content, "fuzz", is_json=is_json)
    except ScenarioError as error:
        checked(str(error))


@given(st.binary() | YAML_TEXTS.map("".join).map(str.encode), st.booleans())
@settings(max_examples=300, deadline=None)  # the machine may be busy
def test_arbitrary_bytes_raise_nothing_but_a_scenario_error(content: bytes, is_json: bool) -> None:
    reads_or_refuses(content, is_json)


@given(st.dictionaries(KEYS, JSON_VALUES, max_size=4) | JSON_VALUES, st.booleans())
@settings(max_examples=300, deadline=None)  # the machine may be busy
def test_arbitrary_data_raise_nothing_but_a_scenario_error(data: object, is_json: bool) -> None:
    reads_or_refuses(json.dumps(data).encode(), is_json)
    try:
        scenario_from_data(data)
    except ScenarioError as error:
        checked(str(error))


@given(st.integers(0, len(GOOD)), st.text(max_size=4), st.integers(0, 6))
@settings(deadline=None)
def test_a_damaged_file_raises_nothing_but_a_scenario_error(place: int, inserted: str, removed: int) -> None:
    reads_or_refuses((GOOD[:place] + inserted + GOOD[place + removed :]).encode(errors="replace"), is_json=False)
