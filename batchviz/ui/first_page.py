"""What the server answers to the bare address: Streamlit's own page, with the player already in it.

Owns: putting the two together. Must not know: sessions, widgets. A browser needs over a second to read Streamlit's
script; the player needs none of that. So it is seen at once, over the page, and moves into its place when that place is
there (assets/player/main.js). A link with a query opens as any Streamlit page does.
"""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import streamlit
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from batchviz.engine import EngineLimitError
from batchviz.export.html import as_script_data
from batchviz.link import theme_of
from batchviz.player_assets import cover_css, cover_js, player_css, player_html
from batchviz.presets import PRESET_NAMES
from batchviz.trace_file import TraceError
from batchviz.ui.theme import PAGE_PADDING
from batchviz.ui.words import TITLE

INDEX = Path(streamlit.__file__).parent / "static" / "index.html"
HEADERS = MappingProxyType({"Cache-Control": "no-cache"})

THEME_SCRIPT = """<script>(() => {
  const ask = window.matchMedia.bind(window);
  const answer = (query) => (query.includes("THEME") ? "all" : "not all");
  window.matchMedia = (query) => ask(query.includes("prefers-color-scheme") ? answer(query) : query);
})();</script>"""


def first_page(request: Request) -> Response:
    """Streamlit's page, and over it the player with the first preset unless something else is asked for."""
    theme = theme_of(request.query_params)
    if theme is not None:
        return HTMLResponse(_themed_page(theme), headers=HEADERS)
    return HTMLResponse(_plain_page() if request.url.query else _covered_page(), headers=HEADERS)


# Under a path of its own Streamlit's page is handed out as it is: its addresses count from that path.
ROUTES = () if streamlit.config.get_option("server.baseUrlPath") else (Route("/", first_page),)


@cache
def _plain_page() -> str:
    return INDEX.read_text(encoding="utf-8")


@cache
def _themed_page(theme: str) -> str:
    """Streamlit asks the browser which theme its reader likes; here the link has answered already."""
    before, head, after = _plain_page().partition("<head>")
    return f"{before}{head}{THEME_SCRIPT.replace('THEME', theme)}{after}"


@cache
def _covered_page() -> str:
    """A recording that cannot be read is for the page to say, not for the server to stumble over."""
    before, end, after = _plain_page().rpartition("</body>")
    try:
        return f"{before}{_cover()}{end}{after}" if end else _plain_page()
    except (TraceError, EngineLimitError, OSError):
        return _plain_page()


def default_payload() -> dict[str, Any] | None:
    """What the player shows first, None if there is no recording. Raises TraceError, EngineLimitError, OSError."""
    # Imported by the first visit: Streamlit's caches, which these use, want a server that runs.
    from batchviz.ui import state
    from batchviz.ui.source import bundle_of, preset_source, usual_panes

    source = preset_source(PRESET_NAMES[0])
    bundle = bundle_of(source, usual_panes(source))
    return None if bundle is None else state.payload_of(bundle)


def _cover() -> str:
    """The cover. Its script is no module: those wait for the ones before them."""
    from batchviz.ui.source import preset_source

    payload = default_payload()
    if payload is None:
        return ""
    source = preset_source(PRESET_NAMES[0])
    data = as_script_data(payload)
    return f"""<div id="batchviz-cover">
<style>#batchviz-cover main{{padding:{PAGE_PADDING}}}{cover_css()}{player_css()}</style>
<main>
<h3>{escape(TITLE)}</h3>
<p class="look-for">{escape(source.scenario.look_for)}</p>
{player_html()}
</main>
</div>
<script type="application/json" id="batchviz-payload">{data}</script>
<script>(() => {{
{cover_js()}
}})();</script>
"""
