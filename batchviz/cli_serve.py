"""The terminal's commands that open the page: for oneself, and for a room.

Owns: `app`, `serve`. Must not know: the page, addresses.
"""

from __future__ import annotations

from typing import Annotated

import typer

PortOption = Annotated[int, typer.Option(min=1, max=65535, help="Port of the page.")]
BrowserOption = Annotated[bool, typer.Option(help="Open the page in a browser.")]


def open_app(
    port: PortOption = 8501,
    host: Annotated[str, typer.Option(help="Address to listen on; others than localhost can be reached by others.")] = (
        "localhost"
    ),
    browser: BrowserOption = True,
) -> None:
    """Open the page in a browser; Ctrl-C ends it."""
    from batchviz.serve import run_page

    raise typer.Exit(run_page(host, port, open_browser=browser))


def serve(
    port: PortOption = 8501,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is every network of this machine.")] = (
        "0.0.0.0"
    ),
    browser: BrowserOption = True,
) -> None:
    """The page for a room: says the address that others can type, and draws it as a QR code; Ctrl-C ends it."""
    from batchviz.serve import run_page

    raise typer.Exit(run_page(host, port, open_browser=browser))
