"""How an exported page reads its options and its address: strictly, garbage ignored."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from batchviz.link import SPEEDS
from batchviz.player_assets import FOLDER

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not here; the browser tests cover the same"
)

NOTHING = {"step": None, "play": None, "speed": None, "controls": None}
FILE = {"step": 7, "play": False}


def read_all(cases: list[tuple[dict[str, Any], str]]) -> list[dict[str, Any]]:
    """One process for all of them: node takes a while to begin."""
    script = f"""
    import {{ readOpening }} from {json.dumps((FOLDER / "opening.js").as_uri())};
    import {{ readFileSync }} from "node:fs";
    const cases = JSON.parse(readFileSync(0, "utf8"));
    console.log(JSON.stringify(cases.map(([options, fragment]) => readOpening(options, fragment))));
    """
    done = subprocess.run(
        ["node", "--no-warnings", "--input-type=module", "-e", script],
        input=json.dumps(cases), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_what_is_said_is_read_and_the_address_goes_before_the_file() -> None:
    cases = {
        "": NOTHING | FILE,
        "#step=12&play=1&speed=2&controls=0": {"step": 12, "play": True, "speed": 2, "controls": False},
        "#controls=1&speed=0.25": NOTHING | FILE | {"speed": 0.25, "controls": True},
        "#step=3&step=4": NOTHING | FILE | {"step": 3},
        "#play=0&nonsense=1": NOTHING | FILE,
    }
    assert read_all([(FILE, fragment) for fragment in cases]) == list(cases.values())


def test_every_speed_of_the_player_can_be_asked_for() -> None:
    assert [one["speed"] for one in read_all([({}, f"#speed={speed:g}") for speed in SPEEDS])] == list(SPEEDS)


def test_garbage_is_ignored() -> None:
    garbage = [
        "#step=-1", "#step=1.5", "#step=", "#step", "#step=1e3", "#step=0x1", "#step= 1", "#step=99999999", "#step=%31",
        "#play=2", "#play=true", "#play=00", "#play=.", "#play=toString", "#speed=3", "#speed=1.0", "#speed=99",
        "#controls=no", "#__proto__=1", "#constructor=1", "#step=1=2", "#STEP=1", "?step=1", "#" + "a" * 300 + "&step=1",
        "#step=١", "#&&==&", "#\u0000", "#step=1;play=1",
    ]  # fmt: skip
    found = read_all([({}, fragment) for fragment in garbage])
    assert [(text, one) for text, one in zip(garbage, found, strict=True) if one != NOTHING] == []
