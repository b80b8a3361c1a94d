"""The page says its address once it answers: to oneself one line and nothing else, to a room what others can type."""

from __future__ import annotations

import subprocess
import sys

import pytest

from batchviz import serve
from batchviz.room import WARNING


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser is told to open, beside a page that answers at once."""
    pages: list[str] = []
    monkeypatch.setattr(serve, "_answers", lambda url: url.endswith("/_stcore/health"))
    monkeypatch.setattr(serve, "find_addresses", lambda: ("192.168.1.7", "127.0.0.1"))
    monkeypatch.setattr(serve.webbrowser, "open", pages.append)
    return pages


def announced(host: str, capsys: pytest.CaptureFixture[str]) -> str:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as server:
        serve._announce(server, host, 8501, True)
        server.kill()
    return capsys.readouterr().out


def test_on_localhost_there_is_one_line_and_no_code(opened: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert announced("localhost", capsys) == "batchviz is at http://localhost:8501 (Ctrl-C ends it)\n"
    assert opened == ["http://localhost:8501"]


def test_a_room_is_told_what_it_can_type_and_what_that_means(
    opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = announced("0.0.0.0", capsys)
    assert text.startswith("batchviz is at http://localhost:8501 ")
    assert "\nfor the room: http://192.168.1.7:8501\n" in text
    assert text.endswith(f"{WARNING}\n")
    assert "0.0.0.0" not in text
    assert opened == ["http://localhost:8501"], "this machine's browser opens the page at home"
