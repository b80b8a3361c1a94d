"""Starts the page's server: `python -m batchviz app` and `serve`, which also work where there is no `make`.

Owns: the command line of `streamlit run`, and saying the address once the page answers. Must not know: the page.
Streamlit runs in a child process, so that this one stays light and ends it cleanly on Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from batchviz.room import NO_NETWORK, WARNING, find_addresses, is_own, own_address, qr_lines, room_addresses

APP = Path(__file__).resolve().parent.parent / "app.py"
STARTS_WITHIN_S = 60.0
ENDS_WITHIN_S = 1.0  # a server that takes longer to say goodbye is ended


def run_page(host: str, port: int, *, open_browser: bool) -> int:
    """Serves until Ctrl-C or SIGTERM; returns the exit code. Says the address on stdout, and to a room its own."""
    problem = why_not_listen(host, port)
    if problem is not None:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    before = signal.signal(signal.SIGTERM, _interrupt)
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.address", host, "--server.port", str(port)]
    server = subprocess.Popen(command, cwd=APP.parent, stdout=subprocess.DEVNULL)
    threading.Thread(target=_announce, args=(server, host, port, open_browser), daemon=True).start()
    try:
        return server.wait()
    except KeyboardInterrupt:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        end_server(server)
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def end_server(server: subprocess.Popen[bytes]) -> None:
    """Ends it and all that it started, politely for ENDS_WITHIN_S; the model's process may be deep in its loading."""
    import psutil

    try:
        family = psutil.Process(server.pid).children(recursive=True)
    except psutil.Error:
        family = []
    server.terminate()
    try:
        server.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    for process in family:
        with contextlib.suppress(psutil.Error):  # psutil knows a process that took the number of one that is gone
            process.kill()


def why_not_listen(host: str, port: int) -> str | None:
    """Why the page cannot have this address, in one sentence; None if it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as server:
            if os.name == "posix":  # elsewhere it means that a port may be shared
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(address)
            server.listen()
    except PermissionError:
        return f"port {port} is not allowed here; choose one from 1024 on with --port"
    except socket.gaierror:
        return f"{host!r} is no address of this machine; see --host"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"port {port} is in use, perhaps by another batchviz; end that, or choose another with --port {port + 1}"
        return f"{host!r} cannot be listened on ({(error.strerror or str(error)).lower()}); see --host"
    return None


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


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
