"""Bytes that are no scenario at all, too much, or a trap: refused within a second and 200 MB."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from batchviz.scenario_file import parse_scenario
from tests.refusals import LIMIT_S, refusal


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
import pathlib, resource, sys
from batchviz.presets import load_scenario, ScenarioError
try:
    load_scenario(sys.argv[1])
except ScenarioError:
    if sys.platform == "linux":  # getrusage would count the memory of the process that started this one
        (line,) = (line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
        print(int(line.split()[1]) // 1024)
    else:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 * 1024))
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
