"""Starts the page's server: `python -m batchviz app`, which also works where there is no `make`.

Owns: the command line of `streamlit run`, and opening a browser once the page answers. Must not know: the page.
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

APP = Path(__file__).resolve().parent.parent / "app.py"
STARTS_WITHIN_S = 60.0


def serve(host: str, port: int, *, open_browser: bool) -> int:
    """Serves until Ctrl-C; returns the exit code. Says the address on stdout."""
    address = f"http://{host}:{port}"
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.address", host, "--server.port", str(port)]
    server = subprocess.Popen(command, cwd=APP.parent, stdout=subprocess.DEVNULL)
    threading.Thread(target=_announce, args=(server, address, open_browser), daemon=True).start()
    try:
        return server.wait()
    except KeyboardInterrupt:
        server.terminate()
        server.wait()
        return 0


def _announce(server: subprocess.Popen[bytes], address: str, open_browser: bool) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline and server.poll() is None:
        if _answers(f"{address}/_stcore/health"):
            print(f"batchviz is at {address} (Ctrl-C ends it)", flush=True)
            if open_browser:
                webbrowser.open(address)
            return
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
