"""The defaults are closed, dependencies are pinned, and every test that SECURITY.md names is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAMED = sorted(
    set(re.findall(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text(encoding="utf-8")))
)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_what_security_md_names_is_there(file: str, name: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {name}(" in text if name else "def test_" in text


def test_the_page_is_closed_by_default() -> None:
    text = (ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    config = tomllib.loads(text)
    assert config["server"]["address"] == "localhost"
    assert config["server"]["enableXsrfProtection"] is True
    assert config["server"]["enableCORS"] is True
    assert config["server"]["fileWatcherType"] == "none"
    assert config["server"]["maxUploadSize"] == 5
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] in ("type", "none", False)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_dependency_is_pinned(name: str) -> None:
    lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    for line in filter(None, lines):
        assert line.startswith("-r ") or re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][\w.]*", line), line


def test_nothing_that_executes_a_strangers_data_is_in_the_package() -> None:
    forbidden = re.compile(r"\beval\(|\bexec\(|pickle\.|yaml\.load\(|shell=True|trust_remote_code=True|os\.system\(")
    for path in (ROOT / "batchviz").rglob("*.py"):
        found = forbidden.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.name}: {found and found.group()}"
