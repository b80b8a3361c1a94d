"""A lesson's files keep the player's convention, and never turn text into markup."""

from __future__ import annotations

import re

import pytest

from batchviz import player_assets
from batchviz.lesson_assets import FOLDER, SCRIPTS, lesson_css, lesson_html, lesson_js, lesson_page_js
from tests.test_player_assets import TOP_LEVEL

IMPORTED = re.compile(r'^import \{([^}]*)\} from "(\.[a-z_./]+\.js)";$', re.MULTILINE)


def text_of(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_file_of_the_folder_is_joined() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*SCRIPTS, "lesson.html", "lesson.css"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_imports_only_what_stands_before_it_and_exists(name: str) -> None:
    text = text_of(name)
    assert text.startswith("// ")
    assert "Owns:" in text[:600]
    imports = IMPORTED.findall(text)
    assert len(imports) == len(re.findall(r"^import\b", text, re.MULTILINE))
    for names, source in imports:
        file = source.rpartition("/")[2]
        known = player_assets.SCRIPTS if source.startswith("../player/") else SCRIPTS[: SCRIPTS.index(name)]
        assert file in known
        folder = player_assets.FOLDER if source.startswith("../player/") else FOLDER
        for imported in (part.strip() for part in names.split(",")):
            exported = rf"^export (?:function|const|class) {imported}\b"
            assert re.search(exported, (folder / file).read_text(encoding="utf-8"), re.MULTILINE), imported
            assert len(re.findall(rf"\b{imported}\b", text)) > 1, f"{name} imports {imported} and does not use it"


def test_names_at_the_top_are_unique_among_all_files() -> None:
    paths = [player_assets.FOLDER / name for name in player_assets.SCRIPTS] + [FOLDER / name for name in SCRIPTS]
    names = [name for path in paths for name in TOP_LEVEL.findall(path.read_text(encoding="utf-8"))]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_text_becomes_markup(name: str) -> None:
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert forbidden not in text_of(name)


def test_colours_and_fonts_are_the_players() -> None:
    colour = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(")
    for name in (*SCRIPTS, "lesson.css", "lesson.html"):
        assert not colour.search(text_of(name)), name


def test_styles_touch_nothing_but_the_lesson() -> None:
    css = re.sub(r"/\*.*?\*/", "", text_of("lesson.css"), flags=re.DOTALL)
    for selector in re.findall(r"(?:^|[{};,])\s*([^{};,@]+?)\s*\{", css):
        assert selector.startswith((".bv-lesson", ".batchviz")) or ")" in selector, selector


def test_joined_scripts_have_no_import_left_and_one_way_in() -> None:
    for joined in (lesson_js(), lesson_page_js()):
        assert not re.search(r"^import\b", joined, re.MULTILINE)
    assert lesson_js().count("export default") == 1
    assert "export" not in re.findall(r"^\w+", lesson_page_js(), re.MULTILINE)
    assert lesson_html().count('class="batchviz"') == 1
    assert ".batchviz" in lesson_css()
