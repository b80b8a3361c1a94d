"""Looks at this machine for `doctor`: one small function a fact. None of them raises, and none changes anything.

Owns: how each fact is found, and the sentence where it cannot be. Must not know: what is good or bad.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import statistics
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from batchviz.doctor import Facts, Port, Steps, Weights, read_pins
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scheduler import Policy
from batchviz.trace import RunConfig

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements.txt"
MEASURED_SLOTS = 4
MEASURED_STEPS = 9
PROMPT_TOKENS = 40
SLOT_CAPACITY = 64
OTHER_PORTS = 20
BUSY_WATCH_S = 0.5

Progress = Callable[[str, float | None], None]


def look(port: int, *, with_model: bool, progress: Progress) -> Facts:
    """Everything that `doctor` asks about. The model is loaded only if its weights are there and whole."""
    pins = find_pins(REQUIREMENTS)
    progress("reading the weights", None)
    cache, weights = find_weights()
    whole = isinstance(weights, Weights) and weights.there and weights.problem is None
    steps = measure_steps(progress) if with_model and whole else None
    return Facts(
        python=sys.version_info[:3],
        pins=pins,
        installed={} if isinstance(pins, str) else find_installed(pins),
        memory=find_memory(),
        cache=cache,
        cache_free=find_room(cache),
        weights=weights,
        port=find_port(port),
        browser=find_browser(),
        steps=steps,
    )


def find_pins(path: Path) -> dict[str, str] | str:
    try:
        return read_pins(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"there is no {path.name} beside the program"


def find_installed(names: Iterable[str]) -> dict[str, str | None]:
    """The version of each package, None for those that are missing. Loads none of them."""
    found: dict[str, str | None] = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def find_memory() -> tuple[int, int] | str:
    try:
        import psutil

        memory = psutil.virtual_memory()
    except (ImportError, OSError, RuntimeError) as error:
        return sentence(error)
    return int(memory.total), int(memory.available)


def find_room(folder: Path) -> int | str:
    """Free bytes where the folder is or would be; tries to write there, or says why that fails."""
    try:
        existing = next((place for place in (folder, *folder.parents) if place.exists()), None)
        if existing is None:
            return "there is no such drive"
        with tempfile.TemporaryFile(dir=existing):
            return shutil.disk_usage(existing).free
    except OSError as error:
        return f"cannot be written to ({sentence(error)})"


def find_weights() -> tuple[Path, Weights | str]:
    """The cache folder, and what lies there."""
    try:
        from batchviz.model.weights import FOLDER, damage, default_cache_dir
    except ImportError as error:
        return Path(os.environ.get("BATCHVIZ_CACHE") or tempfile.gettempdir()), sentence(error)
    cache = default_cache_dir()
    folder = cache / FOLDER
    try:
        there = folder.is_dir()
        return cache, Weights(folder, there, damage(folder, verify=True) if there else None)
    except OSError as error:
        return cache, Weights(folder, True, f"{folder} cannot be read ({sentence(error)})")


def find_port(number: int, host: str = "127.0.0.1") -> Port:
    """Whether the page could listen there; if not, the next port that is free."""
    problem = _port_problem(number, host)
    if problem is None:
        return Port(number, None)
    others = range(number + 1, min(number + 1 + OTHER_PORTS, 65_536))
    return Port(number, problem, next((other for other in others if _port_problem(other, host) is None), None))


def _port_problem(number: int, host: str) -> str | None:
    with socket.socket() as client:  # binding alone does not tell on every system
        client.settimeout(0.5)
        if client.connect_ex((host, number)) == 0:
            return "is in use"
    with socket.socket() as server:
        if os.name == "posix":  # elsewhere it means that a port may be shared
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, number))
        except PermissionError:
            return "is not allowed here"
        except OSError:
            return "is in use"
    return None


def find_browser() -> str | None:
    """The name of what would open the page."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    return str(getattr(browser, "name", "") or type(browser).__name__)


def measure_steps(progress: Progress) -> Steps | str:
    """Loads the real model and makes a few decode steps with the engine. A sentence if anything fails on the way."""
    busy_pct = 0.0
    with suppress(ImportError):
        import psutil

        busy_pct = psutil.cpu_percent(interval=BUSY_WATCH_S)
    try:
        from batchviz.live import LiveModel  # loads torch

        live = LiveModel.load(time.perf_counter, progress=progress)
        progress("measuring a step", None)
        requests = (
            ScenarioRequest(f"r{n}", MEASURED_STEPS + 1, prompt_tokens=PROMPT_TOKENS, output_tokens=MEASURED_STEPS + 1)
            for n in range(MEASURED_SLOTS)
        )
        scenario = Scenario("doctor", "doctor", tuple(requests), num_slots=MEASURED_SLOTS)
        config = RunConfig(Policy.CONTINUOUS, MEASURED_SLOTS, SLOT_CAPACITY)
        run = live.start(live.prepare(scenario, SLOT_CAPACITY), config)
        durations: list[float] = []
        while run.has_work:
            started_s = time.perf_counter()
            run.step()
            durations.append(time.perf_counter() - started_s)
    except Exception as error:  # noqa: BLE001  # whatever torch or the file system meets is said, not thrown
        return sentence(error)
    model = live.loaded.record
    decoding = durations[1:]  # the first step reads the prompts
    return Steps(
        1000 * statistics.median(decoding),
        MEASURED_SLOTS,
        model.device,
        model.dtype,
        model.exact,
        model.exact_note,
        busy_pct,
    )


def sentence(error: BaseException) -> str:
    """What an error says, on one line."""
    text = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
