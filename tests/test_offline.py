"""The folder for laptops without a network: the right wheels, no secrets, and start scripts that bear any folder's name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from batchviz import cli_offline
from batchviz.cli_offline import choose_platforms, choose_pythons, copy_project, fetch_wheels, project_files
from batchviz.offline import (
    PLATFORMS,
    READ_ME,
    TORCH_CPU,
    UNIX_SCRIPT,
    WINDOWS_SCRIPT,
    answers_of,
    is_project_file,
    needed_packages,
    pip_calls,
    script_texts,
    this_platform,
)

ROOT = Path(__file__).parent.parent
LINUX, MACOS, WINDOWS = (PLATFORMS[name] for name in ("linux", "macos", "windows"))
PYTHON = ".".join(map(str, sys.version_info[:2]))

REQUIRES: Mapping[str, Sequence[str]] = {
    "page": ["click>=8", "watcher>=1; platform_system != 'Darwin'", "Speedy.Loop[fast]==1.0", "docs; extra == 'docs'"],
    "click": ["colorama<1; sys_platform == 'win32'", "backport; python_version < '3.12'", "page"],
    "speedy-loop": ["uv-loop; extra == 'fast'", "slow-loop; extra == 'slow'"],
    "torch": ["sympy", "nvidia-cudnn-cu13; platform_system == 'Linux'", "triton==3; platform_system == 'Linux'"],
}
VERSIONS = {"page": "3.0", "click": "8.5", "watcher": "2.0", "speedy-loop": "1.0", "torch": "2.0+cpu", "sympy": "1.0"}


def needed(platform: str, *roots: str, python: str = "3.11") -> dict[str, str]:
    return needed_packages(roots, REQUIRES.get, VERSIONS.get, answers_of(PLATFORMS[platform], python))


def test_conditions_are_answered_for_the_other_platform_and_not_for_this_one() -> None:
    everywhere = {"page", "click", "speedy-loop", "uv-loop", "backport"}
    assert set(needed("linux", "page==3.0")) == everywhere | {"watcher"}
    assert set(needed("macos", "page==3.0")) == everywhere
    assert set(needed("windows", "page==3.0")) == everywhere | {"watcher", "colorama"}
    assert "backport" not in needed("linux", "page==3.0", python="3.12")


def test_versions_are_those_installed_here_else_whatever_will_do() -> None:
    packages = needed("windows", "page==3.0")
    assert packages["click"] == "click==8.5"
    assert packages["colorama"] == "colorama<1"
    assert needed("linux", "click>=9")["click"] == "click>=9"


def test_torch_comes_without_what_its_cuda_builds_need() -> None:
    assert set(needed("linux", "torch==2.0")) == {"torch", "sympy"}


def test_on_linux_torch_is_the_cpu_build_and_elsewhere_the_usual_one() -> None:
    packages = needed("linux", "page==3.0", "torch==2.0")
    for platform, torch in ((LINUX, "torch==2.0+cpu"), (MACOS, "torch==2.0"), (WINDOWS, "torch==2.0")):
        first, others = pip_calls(packages, {"torch": "2.0"}, platform, "3.12")
        assert first[-1] == torch
        assert (TORCH_CPU in first) is (platform is LINUX)
        assert TORCH_CPU not in others
        assert not [word for word in others if word.startswith("torch")]
        assert "click==8.5" in others


def test_only_wheels_are_fetched_and_only_what_was_named() -> None:
    for platform in PLATFORMS.values():
        for call in pip_calls({"click": "click==8.5"}, {"torch": "2.0"}, platform, "3.12"):
            assert {"--no-deps", "--only-binary=:all:"} <= set(call)
            assert call[call.index("--python-version") + 1] == "3.12"
            assert [call[at + 1] for at, word in enumerate(call) if word == "--platform"] == list(platform.tags)


def test_this_projects_own_requirements_can_be_gathered_for_every_platform() -> None:
    roots = [line.split("#")[0] for line in (ROOT / "requirements.txt").read_text().splitlines() if "==" in line]
    for platform in PLATFORMS.values():
        packages = needed_packages(roots, cli_offline._requires, cli_offline._version, answers_of(platform, PYTHON))
        assert {"streamlit", "torch", "starlette", "tokenizers", "jinja2"} <= set(packages)
        assert not [name for name in packages if name.startswith("nvidia")]
        assert ("colorama" in packages) is (platform is WINDOWS)


def test_a_machine_is_known_by_its_system_and_processor() -> None:
    assert this_platform("Windows", "AMD64") is WINDOWS
    assert this_platform("Darwin", "arm64") is MACOS
    assert this_platform("Linux", "x86_64") is LINUX
    assert this_platform("Linux", "riscv64") is None


def test_names_that_are_none_are_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="'beos' is not known; choose from linux, macos, windows"):
        choose_platforms(["beos"])
    with pytest.raises(ValueError, match=r"'3.10' will not do"):
        choose_pythons(["3.10"])
    assert choose_platforms(["macos", "macos"]) == (MACOS,)
    assert choose_pythons(["3.12", "3.11"]) == ("3.12", "3.11")
    assert choose_pythons(None) == (PYTHON,)


def test_a_platform_whose_wheels_cannot_be_fetched_is_one_sentence_and_the_others_are_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetched = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        wrong = "win_amd64" in command
        fetched.append(command[-1])
        said = "WARNING: no luck\nERROR: No matching distribution found for torch==9\n" if wrong else ""
        return subprocess.CompletedProcess(command, int(wrong), "", said)

    monkeypatch.setattr(cli_offline.subprocess, "run", run)
    assert fetch_wheels(WINDOWS, ("3.11",), tmp_path) == "No matching distribution found for torch==9"
    assert len(fetched) == 1
    assert fetch_wheels(MACOS, ("3.11", "3.12"), tmp_path) is None
    assert len(fetched) == 5


# The files.


@pytest.mark.parametrize(
    "path",
    [".git/config", ".gitignore", ".venv/bin/python", "venv-Linux/ready", "a/__pycache__/b.pyc", ".env", ".env.local",
     ".streamlit/secrets.toml", "keys/server.pem", "id_rsa", "credentials.json", ".mypy_cache/x", ".ci/run", ".netrc"],
)  # fmt: skip
def test_what_is_private_or_gits_stays_at_home(path: str) -> None:
    assert not is_project_file(path)


@pytest.mark.parametrize("path", ["app.py", ".streamlit/config.toml", "batchviz/model/tokens.py", "assets/x.json.gz"])
def test_what_the_page_needs_goes_along(path: str) -> None:
    assert is_project_file(path)


def test_every_file_that_is_run_goes_along() -> None:
    kept = set(project_files(ROOT))
    code = [path.relative_to(ROOT).as_posix() for path in (ROOT / "batchviz").rglob("*.py")]
    assets = [path.relative_to(ROOT).as_posix() for path in (ROOT / "assets").rglob("*") if path.is_file()]
    needed_files = {*code, *assets, "app.py", "requirements.txt", ".streamlit/config.toml"}
    assert needed_files <= kept
    assert all(is_project_file(path) for path in kept)


def test_without_git_the_files_are_those_that_lie_there(tmp_path: Path) -> None:
    for path in ("app.py", "batchviz/a.py", ".venv/x.py", ".env", "batchviz/__pycache__/a.pyc"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    assert project_files(tmp_path) == ["app.py", "batchviz/a.py"]
    copy_project(["batchviz/a.py"], tmp_path, tmp_path / "stick" / "project")
    copy_project(["app.py"], tmp_path, tmp_path / "stick" / "project")
    assert [path.name for path in (tmp_path / "stick" / "project").rglob("*")] == ["app.py"], "what was there is gone"


# The start scripts.


def texts(*pythons: str, has_weights: bool = True) -> dict[str, str]:
    return script_texts("0.1.0", (LINUX, WINDOWS), pythons or ("3.11", "3.12"), has_weights)


def test_nothing_is_left_to_fill_in_and_line_ends_are_the_systems() -> None:
    for name, text in texts().items():
        assert not re.search(r"@[A-Z]+@", text)
        assert ("\r\n" in text) is (name != UNIX_SCRIPT)
        assert "\r\r" not in text
        assert text.isascii()


def test_the_first_thing_to_read_is_short_and_says_what_is_there() -> None:
    text = texts()[READ_ME]
    assert len(text.splitlines()) <= 12
    assert "Linux (x86_64), Windows (x86_64), with Python 3.11 or 3.12" in text
    assert "live runs do not" in texts(has_weights=False)[READ_ME]
    assert "live runs do not" not in text


def test_both_scripts_do_the_same_from_the_folder_alone() -> None:
    for name in (UNIX_SCRIPT, WINDOWS_SCRIPT):
        text = texts()[name]
        assert text.count("pip --isolated install") == 1
        assert all("--no-index" in line for line in text.replace("\\\n", "").splitlines() if "pip --isolated" in line)
        for words in ("--find-links", "wheels", "requirements.txt", "BATCHVIZ_CACHE", "weights", "PYTHONPATH",
                      "-m venv", "-m batchviz", "((3, 11), (3, 12),)"):  # fmt: skip
            assert words in text, f"{name} lacks {words}"


def test_the_windows_script_bears_blanks_and_brackets_in_the_folders_name() -> None:
    for line in texts()[WINDOWS_SCRIPT].splitlines():
        if line.startswith("rem"):
            continue
        quoted = re.findall(r'"[^"]*"', line)
        for path in re.findall(r"%(?:here|venv)%|%~dp0", line):
            assert sum(part.count(path) for part in quoted) == line.count(path), line
        assert not re.search(r"\($", line), "a bracket in the folder's name would end a block"


def test_the_windows_script_jumps_only_to_places_that_are_there() -> None:
    text = texts()[WINDOWS_SCRIPT]
    assert set(re.findall(r"goto (\w+)", text)) == set(re.findall(r"^:(\w+)", text, re.MULTILINE))


STUB = r"""#!/bin/sh
# A Python that notes what it is asked, and makes environments of itself.
for word in "$@"; do printf '[%s]' "$word" >>"$LOG"; done
printf ' %s %s\n' "$BATCHVIZ_CACHE" "$PYTHONPATH" >>"$LOG"
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && cp "$0" "$3/bin/python"; fi
"""


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    """A folder with a name that is hard to bear, and a stub of a Python beside it."""
    folder = tmp_path / "a stick (1) & it's $HOME"
    folder.mkdir()
    for name, text in texts("3.11").items():
        (folder / name).write_text(text, newline="")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.11").write_text(STUB)
    (tmp_path / "bin" / "python3.11").chmod(0o755)
    return folder


def start(stick: Path, *words: str, path: str = "/usr/bin:/bin") -> tuple[subprocess.CompletedProcess[str], list[str]]:
    log = stick.parent / "log"
    log.write_text("")
    done = subprocess.run(
        ["sh", str(stick / UNIX_SCRIPT), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
        env={"PATH": path, "LOG": str(log), "HOME": str(stick.parent), "BATCHVIZ_CACHE": "", "PYTHONPATH": ""},
    )
    return done, [line for line in log.read_text().splitlines() if not line.startswith("[-c]")]


@pytest.mark.skipif(os.name != "posix", reason="a script for sh")
def test_the_unix_script_sets_up_once_then_opens_the_page_from_any_folder(stick: Path) -> None:
    path = f"{stick.parent / 'bin'}:/usr/bin:/bin"
    done, asked = start(stick, path=path)
    assert done.returncode == 0, done.stderr
    made, installed, opened = asked
    (venv,) = stick.glob("venv-*")
    assert made.startswith(f"[-m][venv][{venv}]")
    assert f"[--no-index][--find-links][{stick}/wheels][-r][{stick}/project/requirements.txt]" in installed
    assert opened == f"[-m][batchviz][app] {stick}/weights {stick}/project"
    again, asked = start(stick, "run", "two words", "--runner", "model", path=path)
    assert again.returncode == 0
    assert asked == [f"[-m][batchviz][run][two words][--runner][model] {stick}/weights {stick}/project"]


@pytest.mark.skipif(os.name != "posix", reason="a script for sh")
def test_a_set_up_that_failed_is_begun_anew(stick: Path) -> None:
    broken = STUB + 'case "$*" in *install*) exit 3;; esac\n'
    (stick.parent / "bin" / "python3.11").write_text(broken)
    path = f"{stick.parent / 'bin'}:/usr/bin:/bin"
    done, asked = start(stick, path=path)
    assert done.returncode == 3
    assert len(asked) == 2, "nothing was opened"
    (stick.parent / "bin" / "python3.11").write_text(STUB)
    assert len(start(stick, path=path)[1]) == 3


@pytest.mark.skipif(os.name != "posix", reason="a script for sh")
def test_a_laptop_without_python_is_told_which_one(stick: Path) -> None:
    tools = stick.parent / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname", "uname"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    done, asked = start(stick, path=str(tools))
    assert (done.returncode, asked) == (1, [])
    assert "Python 3.11 is needed and was not found" in done.stderr
