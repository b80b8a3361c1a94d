"""What the README shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from batchviz.presets import PRESET_NAMES
from batchviz.scenario_file import parse_scenario

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_scenario_is_one() -> None:
    (text,) = blocks("yaml")
    scenario = parse_scenario(text.encode(), "README", is_json=False)
    assert [request.arrival for request in scenario.requests] == [0, 0, 3]


def test_the_library_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102  # our own README
    assert getattr(names["snapshot"], "step", None) == 199
    assert capsys.readouterr().out == ""


def test_the_commands_name_presets_that_exist() -> None:
    named = re.findall(r"(?:compare|run) (\S+-\S+)", README)
    assert named
    assert all(name in PRESET_NAMES for name in named)


def test_the_picture_is_there() -> None:
    (path,) = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert (Path(__file__).parent.parent / path).is_file()
