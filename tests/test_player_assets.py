"""The player's files keep the convention that makes joining them safe, and never turn text into markup."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from batchviz.export.html import to_html
from batchviz.pane_story import WAITS
from batchviz.player_assets import FOLDER, SCRIPTS, STYLES, page_js, player_css, player_html, player_js
from batchviz.scheduler import WaitReason
from tests.story import story

IMPORTED = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+\.js)";$', re.MULTILINE)
TOP_LEVEL = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) ([A-Za-z_$][\w$]*)", re.MULTILINE)


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_file_of_the_folder_is_joined() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*SCRIPTS, *STYLES, "player.html", "page.css", "cover.css"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_imports_only_what_stands_before_it_and_exists(name: str) -> None:
    text = text_of(name)
    assert text.startswith("// "), "a file says at its top what it owns"
    assert "Owns:" in text[:600]
    imports = IMPORTED.findall(text)
    assert len(imports) == len(re.findall(r"^import\b", text, re.MULTILINE)), "an import that the joiner would not drop"
    for names, source in imports:
        assert SCRIPTS.index(source) < SCRIPTS.index(name)
        for imported in (part.strip() for part in names.split(",")):
            assert re.search(rf"^export (?:function|const|class) {imported}\b", text_of(source), re.MULTILINE)
            body = text[text.rindex("import {") :].split("\n", 1)[1]
            assert re.search(rf"\b{imported}\b", body), f"{name} imports {imported} and does not use it"


def test_names_at_the_top_are_unique_among_all_files() -> None:
    names = [name for script in SCRIPTS for name in TOP_LEVEL.findall(text_of(script))]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_text_becomes_markup(name: str) -> None:
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert forbidden not in text_of(name)


def test_colours_are_written_in_one_file_only() -> None:
    colour = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(")
    for name in (*SCRIPTS, "player.css", "lanes.css", "player.html"):
        assert not colour.search(text_of(name)), name


def test_styles_touch_nothing_but_the_player() -> None:
    css = re.sub(r"/\*.*?\*/|@keyframes.*?\}\s*\}", "", player_css(), flags=re.DOTALL)
    for selectors in re.findall(r"([^{}]+)\{", css):
        for selector in selectors.strip().split(","):
            assert selector.strip().startswith((".batchviz", ".bv-lesson", "@")), selector


def test_every_reason_to_wait_has_words() -> None:
    for reason in WaitReason:
        assert f"  {reason.value}: " in text_of("model.js")
        assert reason in WAITS


def test_nothing_is_fetched_from_anywhere() -> None:
    for text in (player_html(), player_css(), player_js()):
        assert not re.search(r"https?://|@import|\burl\(|\bfetch\(", text)
        assert "\n" in text, "Streamlit takes a string without a line break for a path"


def test_a_page_carries_its_payload_as_inert_json() -> None:
    page = to_html(story(prompts=["</script><script>alert(1)</script>"] * 8))
    found = re.search(r'<script type="application/json" id="batchviz-payload">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert "<" not in found.group(1)
    assert json.loads(found.group(1))["requests"]["prompt"][0].startswith("</script>")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not here; the browser tests run the same script")
def test_the_joined_scripts_are_valid_modules(tmp_path: Path) -> None:
    for number, text in enumerate((player_js(), page_js())):
        file = tmp_path / f"joined{number}.mjs"
        file.write_text(text, encoding="utf-8")
        subprocess.run(["node", "--check", str(file)], check=True, capture_output=True)
