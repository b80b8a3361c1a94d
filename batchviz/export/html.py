"""Traces -> one HTML file that plays them, with nothing to load and nobody to ask.

Owns: the page around the player. Must not know: Streamlit, how the player draws.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from batchviz.export.origin import origin_lines
from batchviz.playback import playback
from batchviz.player_assets import page_css, page_js, player_css, player_html
from batchviz.trace import Trace


def to_html(traces: Sequence[Trace], *, step: int | None = None, play: bool | None = None) -> str:
    """One self-contained page, which opens at `step` and plays or does not; None is as usual: from the start, playing.

    Texts of models and prompts travel as JSON and never become markup; the browser runs the one script whose hash is
    named and no other. The fragment of the page's address is read by assets/player/opening.js.
    """
    payload = playback(traces)
    title = payload["title"] or "batchviz"
    origins = "".join(f'\n<p class="origin">{escape(line)}</p>' for line in origin_lines(traces))
    body = f"""<main>
<h1>{escape(title)}</h1>
<p class="look-for">{escape(payload["look_for"])}</p>
{player_html()}{origins}
</main>
<script type="application/json" id="batchviz-payload">{as_script_data(payload)}</script>
<script type="application/json" id="batchviz-options">{as_script_data({"step": step, "play": play})}</script>"""
    return whole_page(title, body, player_css(), page_js())


def whole_page(title: str, body: str, css: str, script: str) -> str:
    """A page that needs nothing else. `body` is HTML, everything of a stranger's in it escaped."""
    script = f"\n{script}\n"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy_for(script)}">
<title>{escape(title)}</title>
<style>{page_css()}{css}</style>
</head>
<body>
{body}
<script type="module">{script}</script>
</body>
</html>
"""


def as_script_data(payload: Mapping[str, Any]) -> str:
    """A payload as JSON that may stand in a <script> element: nothing in it can end the element."""
    data = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def policy_for(script: str) -> str:
    """The Content-Security-Policy of a page with this one script, which is named by its hash; nothing else runs or loads."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; img-src data:"
    )
