"""What a folder for laptops without a network holds: which wheels each platform needs, which files, which start scripts.

Owns: that, as plain data and text. Must not know: downloads, copying, the terminal.

pip evaluates a requirement's conditions (`; sys_platform == "win32"`) for the machine it runs on, even when it downloads
for another. So the packages are collected here, from what is installed, with the other platform's answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FILES = Path(__file__).resolve().parent / "offline_files"
READ_ME, UNIX_SCRIPT, WINDOWS_SCRIPT = "READ-ME-FIRST.txt", "start.sh", "start.bat"
TORCH_CPU = "https://download.pytorch.org/whl/cpu"
NEWEST_GLIBC, OLDEST_GLIBC = 28, 5
# What only torch's CUDA builds need.
CUDA_ONLY = re.compile(r"nvidia-|cuda-|triton$")
PRIVATE = re.compile(
    r"^(\.env\b.*|\.netrc|\.pypirc|id_(rsa|dsa|ecdsa|ed25519).*|(secrets?|credentials?|passwords?)(\.(?!py$).*)?)$"
    r"|\.(pem|key|p12|pfx|kdbx)$"
)
LEFT_OUT = re.compile(
    r"^(\.git.*|\.ci|\.?venv.*|__pycache__|artifacts|build|batchviz-offline|.*\.egg-info|\..*_cache|\.hypothesis)$"
)


class Platform(NamedTuple):
    """A kind of laptop. `tags` are those of its wheels, `torch` what is added to torch's version for its CPU build."""

    name: str
    label: str
    tags: tuple[str, ...]
    answers: Mapping[str, str]
    torch: str = ""


PLATFORMS = MappingProxyType(
    {
        platform.name: platform
        for platform in (
            Platform(
                "linux",
                "Linux (x86_64)",
                (
                    *(f"manylinux_2_{minor}_x86_64" for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)),
                    "manylinux2014_x86_64",
                    "linux_x86_64",
                ),
                MappingProxyType(
                    {
                        "sys_platform": "linux",
                        "platform_system": "Linux",
                        "os_name": "posix",
                        "platform_machine": "x86_64",
                    }
                ),
                "+cpu",
            ),
            Platform(
                "macos",
                "macOS 14 or newer (Apple's processors)",
                ("macosx_14_0_arm64",),  # pip adds the older ones
                MappingProxyType(
                    {
                        "sys_platform": "darwin",
                        "platform_system": "Darwin",
                        "os_name": "posix",
                        "platform_machine": "arm64",
                    }
                ),
            ),
            Platform(
                "windows",
                "Windows (x86_64)",
                ("win_amd64",),
                MappingProxyType(
                    {
                        "sys_platform": "win32",
                        "platform_system": "Windows",
                        "os_name": "nt",
                        "platform_machine": "AMD64",
                    }
                ),
            ),
        )
    }
)


def this_platform(system: str, machine: str) -> Platform | None:
    """The one that `platform.system()` and `platform.machine()` speak of, None if it is none of ours."""
    for known in PLATFORMS.values():
        if (system, machine) == (known.answers["platform_system"], known.answers["platform_machine"]):
            return known
    return None


def answers_of(platform: Platform, python: str) -> dict[str, str]:
    """What the conditions of requirements ask, as that platform's CPython ("3.11") answers."""
    return {
        **platform.answers,
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_version": "",
    }


def needed_packages(
    roots: Iterable[str],
    requires: Callable[[str], Sequence[str] | None],
    version: Callable[[str], str | None],
    answers: Mapping[str, str],
) -> dict[str, str]:
    """Every package that `roots` need under these answers: what pip is asked for, by canonical name.

    `requires` gives the requirements of an installed package, `version` its version; None for one that is not installed.
    What is not installed here, or in a version that does not do, comes in whatever version its dependants allow.
    """
    asked: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(root) for root in roots]
    while waiting:
        requirement = waiting.pop(0)
        name = canonicalize_name(requirement.name)
        installed = version(name)
        fits = installed is not None and requirement.specifier.contains(installed, prereleases=True)
        asked.setdefault(name, f"{name}=={installed}" if fits else f"{name}{requirement.specifier}")
        for extra in ("", *sorted(requirement.extras)):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for text in requires(name) or ():
                below = Requirement(text)
                cuda = name == "torch" and CUDA_ONLY.match(canonicalize_name(below.name))
                if not cuda and (below.marker is None or below.marker.evaluate({**answers, "extra": extra})):
                    waiting.append(below)
    return asked


def pip_calls(packages: Mapping[str, str], pins: Mapping[str, str], platform: Platform, python: str) -> list[list[str]]:
    """The arguments of `pip download`, call by call: torch's CPU build by itself, everything else together."""
    common = ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    common += [word for tag in platform.tags for word in ("--platform", tag)]
    others = sorted(asked for name, asked in packages.items() if name != "torch")
    index = ["--extra-index-url", TORCH_CPU] if platform.torch else []
    return [[*common, *index, f"torch=={pins['torch']}{platform.torch}"], [*common, *others]]


def is_project_file(path: str) -> bool:
    """Whether a file of the project, by its path with slashes, goes along: nothing of git, caches, or secrets does."""
    parts = PurePosixPath(path).parts
    return not any(LEFT_OUT.search(part) for part in parts) and not PRIVATE.search(parts[-1].lower())


def script_texts(
    version: str, platforms: Sequence[Platform], pythons: Sequence[str], has_weights: bool
) -> dict[str, str]:
    """The two start scripts and the first thing to read, by name, with the line ends that their systems want."""
    words = {
        "VERSION": version,
        "PLATFORMS": ", ".join(platform.label for platform in platforms) or "no platform",
        "VERSIONS": " or ".join(pythons),
        "CANDIDATES": " ".join(f"python{python}" for python in pythons),
        "NUMBERS": " ".join(pythons),
        "TUPLES": ", ".join(f"({python.replace('.', ', ')})" for python in pythons),
        "WEIGHTS": "The model's weights are in weights; nothing is fetched."
        if has_weights
        else "The model's weights are missing: recorded runs work, live runs do not.",
    }
    texts = {}
    for name in (READ_ME, UNIX_SCRIPT, WINDOWS_SCRIPT):
        text = re.sub("@([A-Z]+)@", lambda found: words[found[1]], (FILES / name).read_text(encoding="utf-8"))
        texts[name] = text if name == UNIX_SCRIPT else text.replace("\n", "\r\n")
    return texts
