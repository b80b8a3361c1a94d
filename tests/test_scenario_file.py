"""A stranger's scenario file: read exactly, or refused in one sentence that names the place and what would be right."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.scenario import MAX_LENGTH, MAX_PROMPT_CHARACTERS, Scenario, ScenarioError, ScenarioRequest
from batchviz.scenario_file import dump_scenario, parse_scenario, read_scenario_file, scenario_from_data
from batchviz.scheduler import Policy

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


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "line 1: the file is empty; a scenario has at least a list of requests"),
        (b" \n\n", "line 1: the file is empty; a scenario has at least a list of requests"),
        (
            b"\x7fELF\x02\x01\x01\x00",
            "line 1: the control character U+007F is not text; a scenario file is plain UTF-8",
        ),
        (b"\n\x89PNG\r\n", "line 2: byte 0x89 is not UTF-8 text; save the file as UTF-8"),
        ("title: é".encode("latin-1"), "line 1: byte 0xe9 is not UTF-8 text; save the file as UTF-8"),
        ("[]".encode("utf-16"), "is not UTF-8 text; save the file as UTF-8"),
        (b"[]", "the file holds an empty list; it must hold a mapping with a list called requests"),
        (b'"hello"', "the file holds the text 'hello'; it must hold a mapping with a list called requests"),
        (b"null", "the file holds empty; it must hold a mapping with a list called requests"),
        (
            b"{}",
            "requests is missing; it must be a list of 1 to 2,000 requests, each with an id, a prompt and max_tokens",
        ),
        (b'{"requests": []}', "requests is an empty list; it must be a list of 1 to 2,000 requests"),
        (b'{"requests": null}', "requests is empty; it must be a list of 1 to 2,000 requests"),
        (b'{"requests": {"id": "A"}}', "requests is a mapping; it must be a list of 1 to 2,000 requests"),
    ],
)
def test_what_is_no_scenario_at_all_is_refused(content: bytes, said: str, is_json: bool) -> None:
    assert said in refusal(content, is_json=is_json)


def test_a_file_of_comments_is_empty() -> None:
    assert "the file is empty" in refusal("# nothing\n# here\n")


BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(ord('a') + n + 1)}: &{chr(ord('a') + n + 1)} [{', '.join(['*' + chr(ord('a') + n)] * 9)}]\n"
    for n in range(20)
)


@pytest.mark.parametrize(
    ("content", "is_json", "said"),
    [
        (BOMB, False, "line 2: aliases (*name) are not accepted; write the value out"),
        ("a: &a [*a]", False, "line 1: aliases (*name) are not accepted"),
        ("[" * 200_000, False, "nested too deeply"),
        ("- " * 100_000, False, "nested too deeply"),
        ("{a: " * 50_000, False, "nested too deeply"),
        ("? " * 100_000, False, "a key is a list or a mapping"),
        ("[" + "a," * 120_000 + "]", False, "more than 50,000 values"),
        ("[" + "{}," * 80_000 + "]", False, "more than 50,000 values"),
        ("{" + ",".join(f"k{n}: 1" for n in range(20_000)) + "}", False, "is not a known key"),
        ("a" * 255_000, False, "must hold a mapping"),
        ("'" + "a\n" * 120_000, False, "this is not valid YAML"),
        ("[" * 4_000_000, True, "more than 50,000 values"),
        ("[" * 49_000, True, "nested too deeply"),
        ("[" * 300 + "]" * 300, True, "must hold a mapping"),
        ("[" + "{}," * 1_600_000 + "{}]", True, "more than 50,000 values"),
        ("[" + '"",' * 1_600_000 + '""]', True, "more than 50,000 values"),
        ('"' + "\\" * 4_900_000, True, "this is not valid JSON"),
        ('"' * 4_900_001, True, "more than 50,000 values"),
        ("1" * 4_900_000, True, "the file holds infinite; it must hold a mapping"),
        ('{"requests": [' + ",".join(["{}"] * 20_000) + "]}", True, "requests has more than 2,000 entries"),
        (
            '{"requests": [' + ",".join(["[]"] * 2_000) + "]}",
            True,
            "requests[0] is an empty list; it must be a mapping",
        ),
    ],
)
def test_a_bomb_does_not_go_off(content: str, is_json: bool, said: str) -> None:
    assert said in refusal(content, is_json=is_json)


READ_AND_WEIGH = """
import resource, sys
from batchviz.presets import load_scenario, ScenarioError
try:
    load_scenario(sys.argv[1])
except ScenarioError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1024 * 1024))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no getrusage")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("texts.json", "[" + '"",' * 1_600_000 + '""]'),
        ("mappings.json", "[" + "{}," * 1_600_000 + "{}]"),
        ("ids.json", '{"requests": [' + ",".join(['{"id": "' + "x" * 2400 + '"}'] * 2000) + "]}"),
        ("keys.yaml", "{" + ",".join(f"k{n}: 1" for n in range(20_000)) + "}"),
        ("mappings.yaml", "[" + "{}," * 80_000 + "]"),
    ],
    ids=lambda value: value[:20],
)
def test_a_bad_file_takes_less_than_200_megabytes(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    answer = subprocess.run(
        [sys.executable, "-c", READ_AND_WEIGH, str(path)], capture_output=True, text=True, check=True
    )
    assert 0 < int(answer.stdout) < 200, "megabytes of the whole process"


def test_two_thousand_requests_are_read_and_one_more_is_refused() -> None:
    requests = [
        {"id": f"r{n}", "prompt_tokens": 9, "max_tokens": 9, "output_tokens": 9, "arrival": n} for n in range(2001)
    ]
    assert "requests has more than 2,000 entries" in refusal(json.dumps({"requests": requests}), is_json=True)
    content = json.dumps({"requests": requests[:2000]}).encode()
    assert len(parse_scenario(content, "x.json", is_json=True).requests) == 2000
    assert len(parse_scenario(content, "x.yaml", is_json=False).requests) == 2000


def test_five_megabytes_of_long_prompts_are_read_in_a_second() -> None:
    requests = [{"id": f"r{n}", "prompt": "x, [" * 4_900, "max_tokens": 9} for n in range(250)]
    content = json.dumps({"requests": requests}).encode()
    started = time.process_time()
    assert len(parse_scenario(content, "x.json", is_json=True).requests) == 250
    assert time.process_time() - started < LIMIT_S


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


# --- Properties

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
                arrival=draw(st.integers(0, 1_000_000)),
            )
        )
    return Scenario(
        name=draw(NAMES.map(lambda name: name[:64]).filter(str.strip)),
        title=draw(NAMES.map(lambda name: name[:200]).filter(str.strip)),
        requests=tuple(requests),
        look_for=draw(st.just("") | NAMES.map(lambda name: name[:200]).filter(str.strip)),
        num_slots=draw(st.integers(1, 64)),
        policies=tuple(draw(st.lists(st.sampled_from(Policy), min_size=1, max_size=3, unique=True))),
    )


@given(scenarios())
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
@settings(max_examples=300)
def test_arbitrary_bytes_raise_nothing_but_a_scenario_error(content: bytes, is_json: bool) -> None:
    reads_or_refuses(content, is_json)


@given(st.dictionaries(KEYS, JSON_VALUES, max_size=4) | JSON_VALUES, st.booleans())
@settings(max_examples=300)
def test_arbitrary_data_raise_nothing_but_a_scenario_error(data: object, is_json: bool) -> None:
    reads_or_refuses(json.dumps(data).encode(), is_json)
    try:
        scenario_from_data(data)
    except ScenarioError as error:
        checked(str(error))


@given(st.integers(0, len(GOOD)), st.text(max_size=4), st.integers(0, 6))
def test_a_damaged_file_raises_nothing_but_a_scenario_error(place: int, inserted: str, removed: int) -> None:
    reads_or_refuses((GOOD[:place] + inserted + GOOD[place + removed :]).encode(errors="replace"), is_json=False)
