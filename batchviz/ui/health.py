"""What the server answers to `/health`: whether it can serve a page now, and what it starts with.

Owns: the route, the check, the start. Must not know: sessions, widgets. Streamlit's own `/_stcore/health` says only that
its server runs.
"""

from __future__ import annotations

import streamlit
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from batchviz import __version__
from batchviz.limits import LimitsError, read_limits
from batchviz.run_log import log_to_stderr
from batchviz.ui.tidy import one_heap


def prepare() -> None:
    """What a server does before its first visitor: it has a log, and does not start with limits that cannot be read."""
    log_to_stderr()
    one_heap()
    try:
        read_limits()
    except LimitsError as error:
        raise SystemExit(f"batchviz: {error}") from None


def health(request: Request) -> JSONResponse:
    """200 if a page can be served, 503 and the reason if not. A model's process that died is said and is no reason:
    recorded runs go on, the next live run starts another, and a server that is restarted for it loses its visitors.
    """
    from batchviz.ui import state  # Streamlit's caches want a server that runs

    reason = problem()
    found = {"status": "ok"} if reason is None else {"status": "error", "reason": reason}
    found |= {"model": state.shared_worker().problem or "ok", "version": __version__}
    return JSONResponse(found, 200 if reason is None else 503, {"Cache-Control": "no-store"})


def problem() -> str | None:
    """Why no page can be served, in one sentence; None if one can."""
    from batchviz.ui.first_page import default_payload

    try:
        if default_payload() is None:
            return "the page that opens first has no recorded run"
    except (ValueError, OSError) as error:
        return f"the page that opens first cannot be made: {error}"
    return None


def health_route() -> Route:
    """At the root, or under the server's path."""
    base = str(streamlit.config.get_option("server.baseUrlPath") or "").strip("/")
    return Route(f"/{base}/health" if base else "/health", health)
