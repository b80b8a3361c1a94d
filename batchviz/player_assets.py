"""The player's files, joined into the strings that a page needs.

Owns: the order of the files and the convention that makes joining safe. Must not know: Streamlit, traces, payloads.

Relative imports fail from `blob:` and `file://`, so the ES modules under assets/player/ are joined into one script.
The convention, held by tests/test_player_assets.py: an import is one whole line `import { ... } from "./x.js";` (or such
lines wrapped by a formatter), dropped here; an export is the word `export ` at the start of a line, dropped here; names at
the top of a file are unique among all files; a file imports only from files before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "assets" / "player"
SCRIPTS = (
    "clock.js", "model.js", "dom.js", "palette.js", "lanes.js", "sides.js", "map.js", "telling.js", "pane.js",
    "controls.js", "player.js", "opening.js", "main.js",
)  # fmt: skip
STYLES = ("colours.css", "player.css", "lanes.css")
IMPORT = re.compile(r'^import \{[^}]*\} from "\.[a-z_./]+\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function |const |let |class )", re.MULTILINE)


def player_html() -> str:
    """The markup: one element of class `batchviz`, empty of data."""
    return _read("player.html")


def player_css() -> str:
    """All styles. Every selector starts with `.batchviz`, so they also live in a page of their own."""
    return "\n".join(_read(name) for name in STYLES)


def page_css() -> str:
    """What an exported page needs around the player."""
    return _read("page.css")


def cover_css() -> str:
    """What the player needs around it while it lies over a page that is not there yet."""
    return _read("cover.css")


def player_js() -> str:
    """The script as a Streamlit component: its default export is called with data and its parent element."""
    return f"{_joined()}\nexport default mountComponent;\n"


def page_js() -> str:
    """The script as a page of its own: reads the elements `batchviz-payload` and `batchviz-options`."""
    return f"{_joined()}\nmountPage();\n"


def cover_js() -> str:
    """The script as a cover: as a page of its own, until a component on the same page takes the player over."""
    return f"{_joined()}\nmountCover();\n"


def player_parts() -> str:
    """The player's scripts without a door: for whoever builds something around it."""
    return join_scripts(FOLDER / name for name in SCRIPTS[:-1])


def join_scripts(paths: Iterable[Path]) -> str:
    """The scripts as one, imports and exports dropped."""
    return "\n".join(EXPORT.sub("", IMPORT.sub("", path.read_text(encoding="utf-8"))) for path in paths)


def _joined() -> str:
    return join_scripts(FOLDER / name for name in SCRIPTS)


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
