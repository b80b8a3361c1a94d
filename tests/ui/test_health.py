"""`/health` is true only while a page can be served, and a server with unreadable limits does not start."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import streamlit
from starlette.requests import Request

from batchviz.trace_file import TraceError
from batchviz.ui import first_page, health, state


class OneProblem:
    """A worker as far as this page looks at it."""

    def __init__(self, problem: str | None) -> None:
        self.problem = problem


@pytest.fixture(autouse=True)
def _healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "shared_worker", lambda: OneProblem(None))


def answer() -> tuple[int, dict[str, str]]:
    response = health.health(Request({"type": "http"}))
    return response.status_code, json.loads(bytes(response.body))


def test_it_is_well_when_the_first_page_can_be_made() -> None:
    code, said = answer()
    assert (code, said["status"]) == (200, "ok")


def test_a_dead_model_process_is_said_and_pages_are_served_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "shared_worker", lambda: OneProblem("the model's process has died"))
    code, said = answer()
    assert (code, said["status"], said["model"]) == (200, "ok", "the model's process has died")


def test_a_first_page_that_cannot_be_made_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise TraceError("line 3 is cut off")

    monkeypatch.setattr(first_page, "default_payload", broken)
    code, said = answer()
    assert code == 503
    assert "line 3 is cut off" in said["reason"]
    monkeypatch.setattr(first_page, "default_payload", lambda: None)
    assert answer()[0] == 503


@pytest.mark.parametrize(("base", "path"), [("", "/health"), ("viz", "/viz/health"), ("/a/b/", "/a/b/health")])
def test_it_stands_under_the_path_of_the_server(monkeypatch: pytest.MonkeyPatch, base: str, path: str) -> None:
    monkeypatch.setattr(streamlit.config, "get_option", {"server.baseUrlPath": base}.__getitem__)
    assert health.health_route().path == path


@pytest.fixture
def _own_logger() -> Iterator[None]:
    logger = logging.getLogger("batchviz")
    before = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers, logger.level, logger.propagate = before[0], before[1], before[2]


@pytest.mark.usefixtures("_own_logger")
def test_a_server_does_not_start_with_limits_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATCHVIZ_LIMITS", "absent.yaml")
    with pytest.raises(SystemExit, match=r"^batchviz: absent\.yaml: the limits cannot be read"):
        health.prepare()


@pytest.mark.usefixtures("_own_logger")
def test_the_log_goes_to_stderr_once(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("batchviz").handlers.clear()
    health.prepare()
    health.prepare()
    logging.getLogger("batchviz.runs").info("a line")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("batchviz.runs a line") == 1
