"""A lesson's files, joined with the player's into the strings that a page needs.

Owns: the order of the files under assets/lesson/. Must not know: Streamlit, lessons' texts. The convention is the player's
(player_assets.py), and the same tests hold it.
"""

from __future__ import annotations

from pathlib import Path

from batchviz.player_assets import join_scripts, player_css, player_html, player_parts

FOLDER = Path(__file__).parent.parent / "assets" / "lesson"
SCRIPTS = ("blocks.js", "picture.js", "calculator.js", "progress.js", "cards.js", "lesson.js", "doors.js")


def lesson_html() -> str:
    """The markup: one element of class `bv-lesson`, the player inside it, empty of data."""
    return (FOLDER / "lesson.html").read_text(encoding="utf-8").replace("PLAYER\n", player_html())


def lesson_css() -> str:
    """All styles, the player's among them."""
    return f"{player_css()}\n{(FOLDER / 'lesson.css').read_text(encoding='utf-8')}"


def lesson_js() -> str:
    """The script as a Streamlit component."""
    return f"{_joined()}\nexport default mountLessonComponent;\n"


def lesson_page_js() -> str:
    """The script as a page of its own: reads its data from the element `batchviz-lesson`."""
    return f"{_joined()}\nmountLessonPage();\n"


def _joined() -> str:
    return f"{player_parts()}\n{join_scripts(FOLDER / name for name in SCRIPTS)}"
