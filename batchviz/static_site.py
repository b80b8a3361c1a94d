"""All lessons and presets as files that any host can serve to any number of people: no Python behind them.

Owns: which pages there are, and how they link. Must not know: terminals, how a lesson or a player draws. Every page is whole
in itself, links are relative, and nothing is loaded from anywhere else, so the pages work under any path and from a disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from batchviz.export.html import as_script_data, to_html, whole_page
from batchviz.lesson import Lesson, list_lessons
from batchviz.lesson_assets import lesson_css, lesson_html, lesson_page_js
from batchviz.lesson_payload import lesson_payload
from batchviz.markdown_blocks import plain
from batchviz.playback import playback
from batchviz.player_assets import page_js, player_css, player_html
from batchviz.presets import PRESET_NAMES, SCRIPTED_PRESET_NAMES, load_scenario
from batchviz.recordings import load_recording
from batchviz.scenario import Scenario

PRESETS = PRESET_NAMES + SCRIPTED_PRESET_NAMES


def write_site(folder: Path) -> list[Path]:
    """Writes every page; returns their paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in pages():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def pages() -> Iterator[tuple[str, str]]:
    """(file name, its text), the first page first."""
    lessons = list_lessons()
    yield "index.html", _landing(lessons)
    for place, lesson in enumerate(lessons):
        yield f"{lesson.id}.html", _lesson_page(lesson_payload(lessons, place))
    for name in PRESETS:
        yield preset_file(name), to_html(load_recording(name))


def preset_file(name: str) -> str:
    return f"preset-{name}.html"


def _lesson_page(payload: dict[str, Any]) -> str:
    body = f"""<main class="wide">
{lesson_html()}
</main>
<script type="application/json" id="batchviz-lesson">{as_script_data(payload)}</script>"""
    return whole_page(f"{payload['title']} · batchviz", body, lesson_css(), lesson_page_js())


def _landing(lessons: tuple[Lesson, ...]) -> str:
    body = f"""<main>
<h1>How a language model serves many people at once</h1>
<p class="look-for">Eight people asked a small model something in the same moment, and it has four places to work at. Left: a
fixed group starts and ends together. Right: a freed place is refilled at once. Press Play, or an arrow key.</p>
{player_html()}
<h2>Nine lessons</h2>
<p class="look-for">Five to ten minutes each. Every number in them was computed from the run beside it.</p>
<ol class="tiles">
{"".join(map(_lesson_tile, lessons))}</ol>
<h2>The runs themselves</h2>
<p class="look-for">A real model answered, under a stepwise engine; the same requests, the same tokens, one clock.</p>
<ul class="tiles">
{"".join(_preset_tile(load_scenario(name)) for name in PRESETS)}</ul>
</main>
<script type="application/json" id="batchviz-payload">{as_script_data(playback(load_recording(PRESETS[0])))}</script>"""
    return whole_page("batchviz: how a language model serves many people at once", body, player_css(), page_js())


def _lesson_tile(lesson: Lesson) -> str:
    about = escape(plain(lesson.intro))
    return _tile(f"{lesson.id}.html", lesson.title, f"{lesson.minutes} minutes", about)


def _preset_tile(scenario: Scenario) -> str:
    return _tile(
        preset_file(scenario.name), scenario.title, f"{len(scenario.requests)} requests", escape(scenario.look_for)
    )


def _tile(href: str, title: str, aside: str, about: str) -> str:
    return (
        f'<li><a href="{escape(href, quote=True)}"><b>{escape(title)}</b> <span>{escape(aside)}</span></a>'
        f"<p>{about}</p></li>\n"
    )
