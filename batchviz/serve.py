"""Starts the page's server: `python -m batchviz app` and `serve`, which also work where there is no `make`.

Owns: the command line of `streamlit run`, and saying the address once the page answers. Must not know: the page.
Streamlit runs in a child process, so that this one stays light and ends it cleanly on Ctrl-C.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

from rich.console import Console
from rich.text import Text

from batchviz.room import NO_NETWORK, WARNING, find_addresses, is_own, own_address, qr_lines, room_addresses

APP = Path(__file__).resolve().parent.parent / "app.py"
STARTS_WITHIN_S = 60.0


def run_page(host: str, port: int, *, open_browser: bool) -> int:
    """Serves until Ctrl-C; returns the exit code. Says the address on stdout, and to a room its own."""
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.address", host, "--server.port", str(port)]
    server = subprocess.Popen(command, cwd=APP.parent, stdout=subprocess.DEVNULL)
    threading.Thread(target=_announce, args=(server, host, port, open_browser), daemon=True).start()
    try:
        return server.wait()
    except KeyboardInterrupt:
        server.terminate()
        server.wait()
        return 0


def _announce(server: subprocess.Popen[bytes], host: str, port: int, open_browser: bool) -> None:
    address = own_address(host, port)
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        if _answers(f"{address}/_stcore/health"):
            print(f"batchviz is at {address} (Ctrl-C ends it)", flush=True)
            if not is_own(host):
                tell_room(room_addresses(host, port, find_addresses()), Console(highlight=False))
            if open_browser:
                webbrowser.open(address)
            return
        time.sleep(0.1)


def tell_room(addresses: tuple[str, ...], console: Console) -> None:
    """Says what others can type, draws the first of it as a QR code, and what opening the page to others means."""
    if not addresses:
        console.print(Text(NO_NETWORK), soft_wrap=True)
        return
    first, *others = addresses
    lines = qr_lines(first)
    if console.encoding.lower().startswith("utf") and len(lines[0]) <= console.width:
        for line in lines:
            console.print(Text(line, style="black on bright_white"), soft_wrap=True)
    console.print(Text(f"for the room: {first}"), soft_wrap=True)
    if others:
        console.print(Text(f"if that does not answer: {', '.join(others)}"), soft_wrap=True)
    console.print(Text(WARNING), soft_wrap=True)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
