"""A stranger's scenario file: read exactly, or refused in one sentence that names the place and what would be right."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from batchviz.scenario import MAX_PROMPT_CHARACTERS, Scenario, ScenarioError, ScenarioRequest
from batchviz.scenario_file import dump_scenario, parse_scenario, read_scenario_file, scenario_from_data
from batchviz.scheduler import Policy
from tests.refusals import checked, refusal

GOOD = """\
title: Two chats
num_slots: 2
requests:
  - id: A
    prompt: Hello
    max_tokens: 8
  - id: B
    prompt: Good evening
    max_tokens: 9
    arrival: 3
"""


def test_a_yaml_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "lunch.yaml"
    path.write_text(GOOD)
    assert read_scenario_file(path) == Scenario(
        name="lunch",
        title="Two chats",
        num_slots=2,
        requests=(ScenarioRequest("A", 8, "Hello"), ScenarioRequest("B", 9, "Good evening", arrival=3)),
    )


def test_a_json_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "lunch.JSON"
    data = {"name": "l", "requests": [{"id": "👩‍🍳", "prompt_tokens": 5, "output_tokens": 7}], "policies": ["static"]}
    path.write_text(json.dumps(data, indent="\t"))
    assert read_scenario_file(path) == Scenario(
        name="l",
        title="l",
        requests=(ScenarioRequest("👩‍🍳", 7, prompt_tokens=5, output_tokens=7),),
        policies=(Policy.STATIC,),
    )


def test_what_a_file_leaves_out_has_its_default() -> None:
    scenario = parse_scenario(b"requests: [{id: A, prompt: Hi, max_tokens: 1}]", "x.yaml", is_json=False)
    assert (scenario.num_slots, scenario.arrival_unit, scenario.look_for) == (4, "steps", "")
    assert scenario.policies == (Policy.STATIC, Policy.CONTINUOUS)
    assert scenario.requests[0].arrival == 0
    assert scenario.title == scenario.name == "scenario"


def test_exact_lengths_stand_beside_the_limit_they_override() -> None:
    scenario = scenario_from_data({"requests": [{"id": "A", "prompt": "x", "max_tokens": 5, "output_tokens": 9}]})
    assert (scenario.requests[0].max_tokens, scenario.requests[0].max_output_tokens) == (5, 9)


@pytest.mark.parametrize("word", ["no", "yes", "on", "off", "y", "1_000", "0x1f", "12:30", "2026-01-02", "="])
def test_words_that_older_yaml_takes_for_something_else_stay_words(word: str) -> None:
    scenario = parse_scenario(f"requests: [{{id: {word}, prompt: {word}, max_tokens: 1}}]".encode(), "x", is_json=False)
    assert scenario.requests[0].id == scenario.requests[0].prompt == word


def test_a_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    content = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert len(parse_scenario(content, "x.yaml", is_json=False).requests) == 2


# (what was changed in GOOD, into what, the line, what the sentence must say)
BAD_YAML = [
    ("max_tokens: 8", "max_token: 8", 6, "requests[0].max_token is not a known key; did you mean max_tokens?"),
    ("title:", "titel:", 1, "titel is not a known key; did you mean title?"),
    ("title:", "zebra:", 1, "zebra is not a known key; known keys are name, title, "),
    ("requests:", "request:", 3, "request is not a known key; did you mean requests?"),
    ("max_tokens: 9", "max_tokens: -1", 9, "requests[1].max_tokens is -1; it must be a whole number from 1 to 100,000"),
    ("max_tokens: 9", "max_tokens: 0", 9, "requests[1].max_tokens is 0; it must be a whole number"),
    ("max_tokens: 9", "max_tokens: 100001", 9, "requests[1].max_tokens is 100001; it must be a whole number"),
    ("max_tokens: 9", f"max_tokens: {'9' * 9000}", 9, "requests[1].max_tokens is infinite; it must be a whole number"),
    ("max_tokens: 9", "max_tokens: '9'", 9, "requests[1].max_tokens is the text '9'; it must be a whole number"),
    ("max_tokens: 9", "max_tokens: 9.0", 9, "requests[1].max_tokens is 9.0; it must be a whole number"),
    ("max_tokens: 9", "max_tokens: true", 9, "requests[1].max_tokens is true; it must be a whole number"),
    ("max_tokens: 9", "max_tokens: .nan", 9, "requests[1].max_tokens is not a number (NaN); it must be a whole number"),
    ("max_tokens: 9", "max_tokens: -.inf", 9, "requests[1].max_tokens is infinite; it must be a whole number"),
    ("max_tokens: 9", "max_tokens: [9]", 9, "requests[1].max_tokens is a list; it must be a whole number"),
    (
        "    max_tokens: 9\n",
        "",
        7,
        "requests[1].max_tokens is missing; it must be a whole number from 1 to 100,000 (or",
    ),
    ("max_tokens: 9", "output_tokens: 0", 9, "requests[1].output_tokens is 0; it must be a whole number from 1 to"),
    ("prompt: Hello", "prompt_tokens: 0", 5, "requests[0].prompt_tokens is 0; it must be a whole number from 1 to"),
    (
        "arrival: 3",
        "arrival: -3",
        10,
        "requests[1].arrival is -3; it must be a whole number of steps from 0 to 1,000,000",
    ),
    ("arrival: 3", "arrival: 1000001", 10, "requests[1].arrival is 1000001; it must be a whole number of steps"),
    ("arrival: 3", "arrival: 0.5", 10, "requests[1].arrival is 0.5; it must be a whole number of steps"),
    ("arrival: 3", "arrival: 3\n    prompt_tokens: 3", 11, "requests[1] has both prompt and prompt_tokens; leave one"),
    ("    prompt: Hello\n", "", 4, "requests[0] has neither prompt nor prompt_tokens; give it one of the two"),
    ("prompt: Hello", "prompt: ''", 5, "requests[0].prompt is empty text; it must be text of 1 to 20,000 characters"),
    ("prompt: Hello", "prompt: '  '", 5, "requests[0].prompt is blank text; it must be text of 1 to 20,000 characters"),
    ("prompt: Hello", "prompt: 5", 5, "requests[0].prompt is 5; it must be text of 1 to 20,000 characters"),
    ("prompt: Hello", "prompt: " + "x" * 20_001, 5, "(20,001 characters); it must be text of 1 to 20,000 characters"),
    ("prompt: Hello", 'prompt: "\\e[31m red"', 5, "requests[0].prompt is the text '\\x1b[31m red'; it must be text"),
    ("prompt: Hello", 'prompt: "' + "x" * 50 + '\\0"', 5, "requests[0].prompt is text with the character U+0000; it"),
    ("id: B", "id: A", 7, "requests[1].id is 'A' like requests[0].id; give each its own"),
    ("id: B", "id: ''", 7, "requests[1].id is empty text; it must be one line of 1 to 64 printable characters"),
    ("id: B", "id: " + "b" * 65, 7, "(65 characters); it must be one line of 1 to 64 printable characters"),
    (
        "id: B",
        "id: 7",
        7,
        "requests[1].id is 7; it must be one line of 1 to 64 printable characters (put it in quotes)",
    ),
    ("id: B", 'id: "b\\u202e"', 7, "requests[1].id is the text 'b\\u202e'; it must be one line of 1 to 64 printable"),
    ("id: B", 'id: "b\\nc"', 7, "requests[1].id is the text 'b\\nc'; it must be one line of 1 to 64 printable"),
    ("- id: B\n    ", "- ", 7, "requests[1].id is missing; it must be one line of 1 to 64 printable characters"),
    (
        "title: Two chats",
        'title: "\\u001b]0;owned\\u0007"',
        1,
        "title is the text '\\x1b]0;owned\\x07'; it must be one",
    ),
    ("title: Two chats", "title: " + "t" * 201, 1, "(201 characters); it must be one line of 1 to 200 printable"),
    ("num_slots: 2", "num_slots: 0", 2, "num_slots is 0; it must be a whole number from 1 to 64"),
    ("num_slots: 2", "num_slots: 65", 2, "num_slots is 65; it must be a whole number from 1 to 64"),
    ("num_slots: 2", "num_slots: four", 2, "num_slots is the text 'four'; it must be a whole number from 1 to 64"),
    ("num_slots: 2", "num_slots: ", 2, "num_slots is empty; it must be a whole number from 1 to 64"),
    ("num_slots: 2", "num_slots: 2\nnum_slots: 3", 3, "the key 'num_slots' is given twice; give it once"),
    ("num_slots: 2", "arrival_unit: days", 2, "arrival_unit is the text 'days'; it must be the word steps"),
    (
        "num_slots: 2",
        "policies: [static, dynamic]",
        2,
        "policies[1] is the text 'dynamic'; it must be one of sequential,",
    ),
    ("num_slots: 2", "policies: [static, static]", 2, "policies is a list; it must be a list of one or more of"),
    ("num_slots: 2", "policies: []", 2, "policies is an empty list; it must be a list of one or more of"),
    ("num_slots: 2", "policies: static", 2, "policies is the text 'static'; it must be a list of one or more of"),
    ("num_slots: 2", "num_slots: &two 2\nlook_for: *two", 3, "aliases (*name) are not accepted; write the value out"),
    (
        "num_slots: 2",
        "num_slots: !!python/object/apply:os.system [ls]",
        2,
        "tags (!name) are not accepted; write the plain",
    ),
    ("num_slots: 2", "num_slots: !mine 2", 2, "tags (!name) are not accepted; write the plain value"),
    ("num_slots: 2", "num_slots: !!int 2", 2, "tags (!name) are not accepted; write the plain value"),
    ("num_slots: 2", "[a, b]: 2", 2, "a key is a list or a mapping; keys are words"),
    ("num_slots: 2", "num_slots: [2", 3, "this is not valid YAML ("),
    ("num_slots: 2", "look_for: this: that", 2, "put text that contains a colon in quotes"),
    ("    max_tokens: 8", "\tmax_tokens: 8", 6, "indent with spaces, not with tabs"),
    ("arrival: 3\n", "arrival: 3\n---\n- 4\n", 11, "a second document begins here; a scenario file holds one"),
    ("  - id: B", "  - B\n  - id: B", 7, "requests[1] is the text 'B'; it must be a mapping with an id, a prompt and"),
]


@pytest.mark.parametrize(("before", "after", "line", "said"), BAD_YAML, ids=[f"{case[1][:30]!r}" for case in BAD_YAML])
def test_a_bad_yaml_file_is_refused_with_the_place_and_what_is_right(
    before: str, after: str, line: int, said: str
) -> None:
    assert GOOD.count(before) == 1, "the case changes nothing, or too much"
    message = refusal(GOOD.replace(before, after))
    assert message.startswith(f"bad.yaml, line {line}: ")
    assert said in message


GOOD_JSON = json.dumps(
    {
        "num_slots": 2,
        "requests": [{"id": "A", "prompt": "Hé 😀", "max_tokens": 8}, {"id": "B", "prompt": "x", "max_tokens": 9}],
    },
    indent=1,
)
BAD_JSON = [
    ('"max_tokens": 9', '"max_tokens": NaN', 12, "NaN is not a number that a scenario can use; write a whole number"),
    (
        '"max_tokens": 9',
        '"max_tokens": -Infinity',
        12,
        "-Infinity is not a number that a scenario can use; write a whole",
    ),
    ('"max_tokens": 9', '"max_tokens": 1e999', 12, "requests[1].max_tokens is infinite; it must be a whole number"),
    ('"max_tokens": 9', '"max_tokens": 9.0', 12, "requests[1].max_tokens is 9.0; it must be a whole number"),
    ('"max_tokens": 9', f'"max_tokens": {"9" * 9000}', 12, "requests[1].max_tokens is infinite; it must be a whole"),
    ('"max_tokens": 9', '"max_tokens": true', 12, "requests[1].max_tokens is true; it must be a whole number"),
    ('"max_tokens": 9', '"max_tokens": "9"', 12, "requests[1].max_tokens is the text '9'; it must be a whole number"),
    ('"max_tokens": 9', '"max_tokens": null', 9, "requests[1].max_tokens is missing; it must be a whole number"),
    ('"id": "B"', '"id": "A"', 10, "requests[1].id is 'A' like requests[0].id; give each its own"),
    ('"id": "B"', '"id": "\\ud800"', 10, "requests[1].id is the text '\\ud800'; it must be one line"),
    ('"prompt": "x"', '"prompt": "\\ud800"', 11, "requests[1].prompt is the text '\\ud800'; it must be text of"),
    ('"id": "B"', '"id": "B", "\\ud800": 1', 9, "requests[1].\\ud800 is not a known key; known keys are id, prompt"),
    ('"id": "B"', '"id": "B",\n"id": "C"', 11, "the key 'id' is given twice; give it once"),
    ('"id": "B"', '"id" "B"', 10, "this is not valid JSON (expecting ':' delimiter, column"),
    ('"num_slots": 2', '"num_slots": [[[[2]]]]', 2, "num_slots is a list; it must be a whole number from 1 to 64"),
]


@pytest.mark.parametrize(("before", "after", "line", "said"), BAD_JSON, ids=[f"{case[1][:30]!r}" for case in BAD_JSON])
@pytest.mark.parametrize("indent", [" ", "\t"])
def test_a_bad_json_file_is_refused_with_the_place_and_what_is_right(
    before: str, after: str, line: int, said: str, indent: str
) -> None:
    assert GOOD_JSON.count(before) == 1
    text = re.sub(
        "^ +", lambda spaces: indent * len(spaces.group()), GOOD_JSON.replace(before, after), flags=re.MULTILINE
    )
    message = refusal(text, is_json=True)
    assert message.startswith(f"bad.json, line {line}: ")
    assert said in message


@pytest.mark.parametrize(("suffix", "said"), [(".yaml", "YAML has at most 256 kB"), (".json", "JSON has at most 5 MB")])
def test_a_file_of_fifty_megabytes_is_refused_before_it_is_read(
    tmp_path: Path, suffix: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"big{suffix}"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("the file was opened"))
    with pytest.raises(ScenarioError, match=r"big\.(yaml|json) has 50\.0 MB; a scenario in") as caught:
        read_scenario_file(path)
    assert said in checked(str(caught.value))


def said_of(path: str | Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        read_scenario_file(path)
    return checked(str(caught.value))


def test_what_is_no_readable_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "gone.yaml does not exist; give the path of a YAML or JSON file" in said_of(tmp_path / "gone.yaml")
    assert " is a folder; name a YAML or JSON file in it" in said_of(tmp_path)
    assert "cannot be read (" in said_of(tmp_path / ("x" * 300))
    assert "is not a file name" in said_of("a\0b.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "is not a regular file" in said_of(tmp_path / "pipe.yaml")
    assert "a\\x1b[31m.yaml does not exist" in said_of("a\x1b[31m.yaml")
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    assert "cannot be read (" in said_of(tmp_path / "loop.yaml")

    (tmp_path / "mine.yaml").write_text(GOOD)
    monkeypatch.setattr("builtins.open", raise_permission_error)  # the tests may run as root
    assert "mine.yaml may not be read by you; change its permissions" in said_of(tmp_path / "mine.yaml")


def raise_permission_error(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_data_without_a_file_is_checked_alike() -> None:
    with pytest.raises(ScenarioError, match=r"^your table: requests\[0\]\.max_tokens is 0; it must be a whole number"):
        scenario_from_data({"requests": [{"id": "A", "prompt": "x", "max_tokens": 0}]}, "your table")


def test_a_scenario_too_long_for_yaml_is_not_written() -> None:
    request = [ScenarioRequest(str(n), 1, "x" * MAX_PROMPT_CHARACTERS) for n in range(20)]
    with pytest.raises(ScenarioError, match=r"has 400 kB; a scenario in YAML has at most 256 kB"):
        dump_scenario(Scenario("s", "s", tuple(request)))
