"""Traces as files: an exact round trip, and one sentence about every broken file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.scheduler import Policy
from batchviz.trace import RunnerKind
from batchviz.trace_file import (
    TraceError,
    bundle_to_json,
    read_traces,
    trace_to_json,
    traces_from_bytes,
    traces_from_json,
    write_traces,
)
from tests.builders import GOLDEN_LENGTHS, recorded_engine, scripted_trace, trace_of
from tests.test_engine_edges import real

TRACE = scripted_trace(Policy.STATIC, 4, GOLDEN_LENGTHS)


def plain() -> dict[str, Any]:
    data = json.loads(trace_to_json(TRACE))
    assert isinstance(data, dict)
    return data


def test_round_trip_is_exact() -> None:
    (again,) = traces_from_json(trace_to_json(TRACE))
    assert again == TRACE


def test_round_trip_keeps_words_whatever_they_are() -> None:
    requests = [real("a", 3)]
    engine = recorded_engine(Policy.CONTINUOUS, 1, requests, {"a": [9, 9, 2]})
    trace = trace_of(engine, Policy.CONTINUOUS, 1, requests, kind=RunnerKind.RECORDED)
    (again,) = traces_from_json(trace_to_json(trace))
    assert again == trace
    assert again.text("a") == "9 9 2 "
    assert again.text("a", 0) == "9 "


def test_one_step_stands_on_one_line() -> None:
    lines = trace_to_json(TRACE).splitlines()
    assert len(lines) == len(TRACE.steps) + 2
    assert all(json.loads(line.rstrip(","))["step"] == i for i, line in enumerate(lines[1:-1]))


def test_a_golden_trace_has_no_durations_and_no_machine() -> None:
    header = json.loads(trace_to_json(TRACE, durations=False))
    assert header["origin"] == {"runner": "scripted", "seconds": "modelled"}
    assert {step["forward_s"] for step in header["steps"]} == {0}


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_files_hold_a_trace_or_a_bundle(tmp_path: Path, suffix: str) -> None:
    other = scripted_trace(Policy.CONTINUOUS, 4, GOLDEN_LENGTHS)
    write_traces(tmp_path / f"one{suffix}", [TRACE])
    write_traces(tmp_path / f"two{suffix}", [TRACE, other])
    assert read_traces(tmp_path / f"one{suffix}") == (TRACE,)
    assert read_traces(tmp_path / f"two{suffix}") == (TRACE, other)


def change(path: str, value: Any) -> str:
    data: Any = plain()
    target, *rest = [int(part) if part.isdigit() else part for part in path.split("/")]
    node = data
    for part in rest:
        node, target = node[target], part
    node[target] = value
    return json.dumps(data)


BROKEN = [
    ("", "is empty"),
    ("\x00\x01", "line 1: this is not JSON"),
    ("[1]", "expected an object"),
    ("{}", "schema is None"),
    ('{"schema": "batchviz-trace/9"}', "schema is 'batchviz-trace/9'"),
    ('{"schema": "batchviz-trace/1"}', "scenario: field required"),
    ('{"schema": "batchviz-bundle/1", "traces": []}', "at least one trace"),
    ('{"schema": "batchviz-trace/1", "a": NaN}', "NaN is not a number"),
    ('{"schema": "batchviz-trace/1", "a": 1e999}', "too large a number"),
    ('{"a": 1, "a": 2}', "'a' stands twice"),
    ("[" * 100_000, "nested too deeply"),
    (change("config/num_slots", "4"), "config.num_slots: input should be a valid integer (it is '4')"),
    (change("config/policy", "magic"), "config.policy: input should be 'sequential', 'static' or 'continuous'"),
    (change("config/extra", 1), "config.extra: unexpected"),
    (change("steps/3/slots/0/0", "dancing"), "steps[3].slots[0]"),
    (change("steps/3/start_s", True), "steps[3].start_s"),
    (change("steps/0/nonsense", 1), "steps[0].nonsense"),
]


@pytest.mark.parametrize(("text", "sentence"), BROKEN, ids=[sentence for _, sentence in BROKEN])
def test_a_broken_trace_gets_one_sentence_that_names_the_place(text: str, sentence: str) -> None:
    with pytest.raises(TraceError) as error:
        traces_from_bytes(text.encode(), name="x.json")
    assert sentence in str(error.value)
    assert str(error.value).startswith("x.json")
    assert "\n" not in str(error.value)


def test_broken_gzip_and_bombs_are_refused() -> None:
    with pytest.raises(TraceError, match="broken gzip"):
        traces_from_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(TraceError, match="broken gzip"):
        traces_from_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with pytest.raises(TraceError, match="unpacks to more than"):
        traces_from_bytes(gzip.compress(b" " * 60_000_000, compresslevel=1))


def test_absent_large_and_odd_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not exist"):
        read_traces(tmp_path / "none.json")
    with pytest.raises(TraceError, match="is a folder"):
        read_traces(tmp_path)
    (large := tmp_path / "large.json").write_bytes(b" " * 5_000_001)
    with pytest.raises(TraceError, match=r"5,000,001 bytes; a trace file has at most 5,000,000"):
        read_traces(large)


def test_a_bundle_holds_one_scenario() -> None:
    other = scripted_trace(Policy.CONTINUOUS, 4, [1, 2])
    with pytest.raises(TraceError, match="one scenario"):
        traces_from_json(bundle_to_json([TRACE, other]))


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300)
    | st.recursive(st.none() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)).map(
        lambda v: json.dumps(v).encode()
    )
)
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    with pytest.raises(TraceError):
        traces_from_bytes(raw)
