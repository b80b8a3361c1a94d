"""The image and the words about it, checked as text (there is no docker where this was made), and its health check run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from batchviz.limits import Limits

ROOT = Path(__file__).parent.parent


def instructions() -> list[tuple[str, str]]:
    """(INSTRUCTION, rest) in order, continued lines joined, comments left out."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def all_of(name: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == name]


def test_the_image_is_built_on_one_pinned_python() -> None:
    (base,) = all_of("FROM")
    found = re.fullmatch(r"python:(\d+)\.(\d+)\.\d+-slim-bookworm", base)
    assert found
    assert (int(found[1]), int(found[2])) >= (3, 11)


def test_the_image_runs_as_an_ordinary_user() -> None:
    order = [instruction for instruction, _ in instructions()]
    assert all_of("USER") == ["batchviz"]
    assert any("useradd" in command and "--uid 1000" in command for command in all_of("RUN"))
    assert order.index("USER") < order.index("CMD")
    weights = next(i for i, (_, rest) in enumerate(instructions()) if "batchviz fetch" in rest)
    assert order.index("USER") < weights, "the weights must lie in that user's cache"


def test_the_weights_are_baked_in_by_a_build_argument() -> None:
    assert all_of("ARG") == ["WEIGHTS=baked"]
    assert 'if [ "$WEIGHTS" != none ]; then python -m batchviz fetch; fi' in all_of("RUN")


def test_no_secret_is_in_the_image() -> None:
    for instruction, rest in instructions():
        if instruction in ("ARG", "ENV"):
            assert not re.search(r"(?i)token|secret|password|api_?key", rest)
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] not in "#"]
    assert lines[0] == "*"
    assert lines.index("**/secrets.toml") > max(i for i, line in enumerate(lines) if line.startswith("!"))
    assert not any("Dockerfile" in line or ".git" in line or "*" in line for line in lines if line.startswith("!"))


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] == "!"
    ]
    sources = [source for rest in all_of("COPY") for source in rest.split()[:-1]]
    assert {"app.py", "batchviz", "assets", "lessons", ".streamlit"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists()
        assert any(one == source or one.startswith(f"{source}/") for one in allowed), source
    assert all((ROOT / one).exists() for one in allowed)


@contextmanager
def server_of(code: int, path: str) -> Iterator[int]:
    """Answers `code` at this path and 404 elsewhere."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code if self.path == path else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("code", "base", "is_well"), [(200, "", True), (200, "/viz/", True), (503, "", False), (503, "viz", False)]
)
def test_the_images_health_check_asks_for_health(code: int, base: str, is_well: bool) -> None:
    (check,) = all_of("HEALTHCHECK")
    command = json.loads(check[check.index("CMD") + 4 :])
    path = "/health" if not base else f"/{base.strip('/')}/health"
    with server_of(code, path) as port:
        environment = {"BATCHVIZ_PORT": str(port), "STREAMLIT_SERVER_BASE_URL_PATH": base}
        done = subprocess.run([sys.executable, *command[1:]], env=environment, capture_output=True, check=False)
    assert command[0] == "python"
    assert (done.returncode == 0) is is_well


def test_the_limits_that_are_written_down_are_the_defaults() -> None:
    text = (ROOT / "DEPLOYMENT.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert yaml.safe_load(block) == asdict(Limits())


def test_the_line_for_the_community_cloud_leaves_the_model_out_and_the_page_in() -> None:
    (expression,) = re.findall(r"sed -i -E '/(.*?)/d' requirements\.txt", (ROOT / "DEPLOYMENT.md").read_text("utf-8"))
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    gone = {line.split("==")[0] for line in lines if re.search(expression, line)}
    assert gone == {"torch", "transformers", "accelerate", "gguf", "safetensors"}
    assert any(line.startswith("streamlit==") for line in lines)


def test_nginx_is_told_to_upgrade_the_websocket() -> None:
    text = (ROOT / "DEPLOYMENT.md").read_text(encoding="utf-8")
    for line in ("proxy_http_version 1.1;", "proxy_set_header Upgrade $http_upgrade;", "proxy_read_timeout"):
        assert line in text
