"""`python -m batchviz offline FOLDER`: everything that a laptop without a network needs, for a memory stick.

Owns: the command, the downloads, the copying. Must not know: which packages, files and words those are.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform as this_machine
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from batchviz import __version__
from batchviz.cli_runs import Terminal
from batchviz.doctor import read_pins
from batchviz.offline import (
    PLATFORMS,
    UNIX_SCRIPT,
    Platform,
    answers_of,
    is_project_file,
    needed_packages,
    pip_calls,
    script_texts,
    this_platform,
)

ROOT = Path(__file__).resolve().parent.parent


def offline(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to gather it; asking again adds to it.")],
    platform: Annotated[
        list[str] | None,
        typer.Option(help="linux, macos, windows; may be given again. Default: this machine's."),
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(help="The laptops' Python, such as 3.12; may be given again. Default: this one's."),
    ] = None,
) -> None:
    """Gather the project, wheels, weights and start scripts in one folder; the last line on stdout is the folder."""
    with Terminal() as terminal:
        platforms = choose_platforms(platform)
        pythons = choose_pythons(python)
        folder.mkdir(parents=True, exist_ok=True)
        copy_project(project_files(ROOT), ROOT, folder / "project")
        missing: list[str] = []
        complete: list[Platform] = []
        for wanted in platforms:
            terminal.progress(f"fetching the wheels for {wanted.label}", None)
            problem = fetch_wheels(wanted, pythons, folder / "wheels")
            if problem is None:
                complete.append(wanted)
            else:
                missing.append(
                    f"{wanted.label}: its wheels could not be fetched ({problem}); the rest works without it"
                )
        problem = copy_weights(folder / "weights", terminal)
        if problem is not None:
            missing.append(f"the weights: {problem}; recorded runs work without them")
        for name, text in script_texts(__version__, complete, pythons, problem is None).items():
            (folder / name).write_text(text, encoding="utf-8", newline="")
        (folder / UNIX_SCRIPT).chmod(0o755)
    for sentence in missing:
        print(sentence, file=sys.stderr)
    print(folder)
    raise typer.Exit(1 if missing else 0)


def choose_platforms(names: Sequence[str] | None) -> tuple[Platform, ...]:
    """Those named, or this machine's. Raises ValueError with one sentence."""
    if not names:
        own = this_platform(this_machine.system(), this_machine.machine())
        if own is None:
            raise ValueError(
                f"there are no wheels for this kind of machine; name one with --platform: {', '.join(PLATFORMS)}"
            )
        return (own,)
    unknown = [name for name in names if name not in PLATFORMS]
    if unknown:
        raise ValueError(f"--platform: {unknown[0]!r} is not known; choose from {', '.join(PLATFORMS)}")
    return tuple(PLATFORMS[name] for name in dict.fromkeys(names))


def choose_pythons(versions: Sequence[str] | None) -> tuple[str, ...]:
    """Those named, or this one's. Raises ValueError with one sentence."""
    if not versions:
        return (".".join(map(str, sys.version_info[:2])),)
    for version in versions:
        if not re.fullmatch(r"3\.(1[1-9]|[2-9]\d)", version):
            raise ValueError(f"--python: {version!r} will not do; it must be 3.11 or newer, such as 3.12")
    return tuple(dict.fromkeys(versions))


def project_files(root: Path) -> list[str]:
    """What goes along of the project, with slashes: what git keeps, or where there is no git, what lies there."""
    listed = (
        subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
        if _has_git(root)
        else None
    )
    if listed is not None and listed.returncode == 0:
        paths = [path for path in listed.stdout.decode().split("\0") if path and (root / path).is_file()]
    else:
        walked = os.walk(root)
        paths = []
        for place, folders, names in walked:
            below = Path(place).relative_to(root)
            folders[:] = sorted(name for name in folders if is_project_file((below / name).as_posix()))
            paths += [(below / name).as_posix() for name in names]
    return sorted(path for path in paths if is_project_file(path))


def _has_git(root: Path) -> bool:
    return (root / ".git").exists() and shutil.which("git") is not None


def copy_project(paths: Sequence[str], root: Path, target: Path) -> None:
    """Puts the files in the place of what was there before."""
    shutil.rmtree(target, ignore_errors=True)
    for path in paths:
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, place)


def fetch_wheels(wanted: Platform, pythons: Sequence[str], target: Path) -> str | None:
    """Downloads what the platform needs. Returns why that failed, in pip's words, None if it did not."""
    pins = read_pins((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    roots = [f"{name}=={number}" for name, number in pins.items()]
    for python in pythons:
        packages = needed_packages(roots, _requires, _version, answers_of(wanted, python))
        for arguments in pip_calls(packages, pins, wanted, python):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
            done = subprocess.run(
                [*command, "--dest", str(target), *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                stdin=subprocess.DEVNULL,
            )
            if done.returncode != 0:
                said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
                errors = [line for line in said if line.startswith("ERROR") or "No module named" in line]
                return (errors or said or ["pip failed"])[-1].removeprefix("ERROR: ")
    return None


def _requires(name: str) -> list[str] | None:
    try:
        return importlib.metadata.requires(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def copy_weights(target: Path, terminal: Terminal) -> str | None:
    """Copies the converted weights, fetched first if need be. Returns why that failed, None if it did not."""
    from batchviz.model.weights import FOLDER, WeightsError, damage, ensure_weights

    place = target / FOLDER
    if place.is_dir() and damage(place, verify=True) is None:
        return None
    try:
        source = ensure_weights(terminal.progress, verify=True)
    except WeightsError as error:
        return str(error)
    terminal.progress("copying the weights", None)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(source, place, copy_function=shutil.copyfile)
    return damage(place, verify=True)
