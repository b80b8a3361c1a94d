"""Starts the real page for the browser tests: `streamlit run app.py` on a free port of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ARTIFACTS = ROOT / "artifacts"


@dataclass(frozen=True)
class Server:
    """A running page."""

    url: str
    process_id: int
    log: Path


@contextmanager
def app_server(more_options: Sequence[str] = ()) -> Iterator[Server]:
    """Yields once the page answers; ends it, and whatever it started, afterwards. `more_options` are Streamlit's."""
    ARTIFACTS.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = ARTIFACTS / "streamlit.log"
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    options = ["--server.port", str(port), "--server.address", "127.0.0.1", "--server.headless", "true"]
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, *options, *more_options],
            cwd=ROOT,
            stdout=out,
            stderr=out,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
        yield Server(url, process.pid, log)
    finally:
        process.terminate()
        process.wait(20)
