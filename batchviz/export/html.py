"""Traces -> one HTML file that plays them, with nothing to load and nobody to ask.

Owns: the page around the player. Must not know: Streamlit, how the player draws.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from batchviz.playback import playback
from batchviz.player_assets import page_css, page_js, player_css, player_html
from batchviz.trace import Trace


def to_html(traces: Sequence[Trace]) -> str:
    """One self-contained page. Texts of models and prompts travel as JSON and never become markup."""
    payload = playback(traces)
    title = escape(payload["title"] or "batchviz")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<style>{page_css()}{player_css()}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="look-for">{escape(payload["look_for"])}</p>
{player_html()}
</main>
<script type="application/json" id="batchviz-payload">{as_script_data(payload)}</script>
<script type="module">
{page_js()}
</script>
</body>
</html>
"""


def as_script_data(payload: Mapping[str, Any]) -> str:
    """A payload as JSON that may stand in a <script> element: nothing in it can end the element."""
    data = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
