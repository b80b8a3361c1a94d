"""What the page shows as the parameters of a link, and back. Garbage never raises: it falls back to what is usual.

Owns: PaneChoice, View, and their short text. Must not know: streamlit, engines, traces, files. Example of a link:
`?preset=eight-chats&panes=static-4,continuous-4-chunked-b64&step=48&speed=2`. A scenario of one's own travels inside
the link, compressed, while it fits MAX_OWN_CHARACTERS; a longer one goes as a file.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from batchviz.prefill import PrefillMode, make_prefill
from batchviz.scenario import MAX_GROUP_TIMEOUT, MAX_SLOTS, MAX_TOKENS_TOGETHER, Scenario, ScenarioError
from batchviz.scenario_file import dump_scenario, parse_scenario
from batchviz.scheduler import Policy

MAX_PANES = 3
MAX_OWN_CHARACTERS = 4_000  # of a scenario inside a link
MAX_OWN_UNPACKED = 50_000  # bytes
MAX_STEP = 10_000_000
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # as the player has them
THEMES = ("light", "dark")
WORD = re.compile(r"[a-z0-9-]{1,64}")
PANE = re.compile(
    r"(?P<policy>[a-z]+)-(?P<slots>[0-9]{1,3})(-(?P<prefill>[a-z]+))?"
    r"(-b(?P<batched>[0-9]{1,9}))?(-k(?P<kv>[0-9]{1,9}))?(-t(?P<timeout>[0-9]{1,9}(\.[0-9]{1,9})?))?"
)


@dataclass(frozen=True, slots=True)
class PaneChoice:
    """What one pane shows: a policy and its settings, each as in RunConfig."""

    policy: Policy
    num_slots: int
    prefill: PrefillMode = PrefillMode.MIXED
    max_batched_tokens: int | None = None
    kv_budget_tokens: int | None = None
    group_timeout: float = 0


@dataclass(frozen=True, slots=True)
class View:
    """All that a link says. What it does not say is None or empty, and then the usual holds."""

    preset: str | None = None
    own: Scenario | None = None  # takes the preset's place
    panes: tuple[PaneChoice, ...] = ()
    chart: str | None = None
    step: int | None = None
    speed: float | None = None
    theme: str | None = None  # one of THEMES; None is the reader's own
    play: bool | None = None  # None: a view without a step plays, one with a step rests there
    controls: bool = True  # False hides the player's, for a frame in another page


def panes_to_text(panes: tuple[PaneChoice, ...]) -> str:
    """Example: `static-4,continuous-4-chunked-b64`."""
    return ",".join(_pane_to_text(pane) for pane in panes)


def panes_from_text(text: str) -> tuple[PaneChoice, ...]:
    """One to three panes; none at all if any of them cannot be read."""
    parts = text[:400].split(",")
    panes = tuple(pane for pane in map(_pane_from_text, parts) if pane is not None)
    return panes if len(panes) == len(parts) <= MAX_PANES else ()


def view_to_params(view: View) -> dict[str, str] | None:
    """The parameters of the link, or None if its own scenario does not fit into one."""
    params: dict[str, str] = {}
    if view.own is not None:
        own = scenario_to_text(view.own)
        if own is None:
            return None
        params["scenario"] = own
    elif view.preset is not None:
        params["preset"] = view.preset
    if view.panes:
        params["panes"] = panes_to_text(view.panes)
    if view.chart is not None:
        params["chart"] = view.chart
    if view.step is not None:
        params["step"] = str(view.step)
    if view.speed is not None:
        params["speed"] = f"{view.speed:g}"
    if view.theme is not None:
        params["theme"] = view.theme
    if view.play is not None:
        params["play"] = str(int(view.play))
    if not view.controls:
        params["controls"] = "0"
    return params


def view_from_params(params: Mapping[str, str]) -> View:
    """What can be read of a link; never raises. Whether a preset or a chart of that name exists, the page must ask."""
    own = scenario_from_text(params.get("scenario", ""))
    return View(
        preset=_word(params.get("preset")) if own is None else None,
        own=own,
        panes=panes_from_text(params.get("panes", "")),
        chart=_word(params.get("chart")),
        step=_step(params.get("step", "")),
        speed=next((speed for speed in SPEEDS if f"{speed:g}" == params.get("speed")), None),
        theme=theme_of(params),
        play={"0": False, "1": True}.get(params.get("play", "")),
        controls=params.get("controls") != "0",
    )


def theme_of(params: Mapping[str, str]) -> str | None:
    """The theme that a link asks for, None for none or one that there is not."""
    return next((theme for theme in THEMES if theme == params.get("theme")), None)


def scenario_to_text(scenario: Scenario) -> str | None:
    """A scenario as letters, digits, - and _; None if that takes more than MAX_OWN_CHARACTERS."""
    try:
        plain = dump_scenario(scenario).encode()
    except (ScenarioError, UnicodeEncodeError):
        return None
    if len(plain) > MAX_OWN_UNPACKED:
        return None
    text = base64.urlsafe_b64encode(zlib.compress(plain, 9)).decode().rstrip("=")
    return text if len(text) <= MAX_OWN_CHARACTERS else None


def scenario_from_text(text: str) -> Scenario | None:
    """The other way; None for whatever is no scenario, too long, or unpacks to too much."""
    if not text or len(text) > MAX_OWN_CHARACTERS or not text.isascii():
        return None
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed, MAX_OWN_UNPACKED)
        if not unpacker.eof:
            return None
        return parse_scenario(plain, "the scenario in the link", is_json=False)
    except (binascii.Error, zlib.error, ScenarioError, ValueError):
        return None


def _pane_to_text(pane: PaneChoice) -> str:
    parts = [pane.policy.value, str(pane.num_slots)]
    if pane.prefill is not PrefillMode.MIXED:
        parts.append(pane.prefill.value)
    if pane.max_batched_tokens is not None:
        parts.append(f"b{pane.max_batched_tokens}")
    if pane.kv_budget_tokens is not None:
        parts.append(f"k{pane.kv_budget_tokens}")
    if pane.group_timeout:
        parts.append(f"t{pane.group_timeout:.9f}".rstrip("0").rstrip("."))
    return "-".join(parts)


def _pane_from_text(text: str) -> PaneChoice | None:
    found = PANE.fullmatch(text)
    if found is None:
        return None
    try:
        pane = PaneChoice(
            Policy(found["policy"]),
            int(found["slots"]),
            PrefillMode(found["prefill"] or PrefillMode.MIXED),
            int(found["batched"]) if found["batched"] else None,
            int(found["kv"]) if found["kv"] else None,
            float(found["timeout"] or 0),
        )
        return checked(pane)
    except ValueError:
        return None


def checked(pane: PaneChoice) -> PaneChoice:
    """The pane as it will run: sequential on one slot, a time-out for static alone. Raises ValueError if it cannot."""
    if pane.policy is Policy.SEQUENTIAL:
        pane = replace(pane, num_slots=1)
    if pane.policy is not Policy.STATIC:
        pane = replace(pane, group_timeout=0)
    if not 1 <= pane.num_slots <= MAX_SLOTS:
        raise ValueError(f"a pane has 1 to {MAX_SLOTS} slots")
    for budget in (pane.kv_budget_tokens, pane.max_batched_tokens):
        if budget is not None and not 1 <= budget <= MAX_TOKENS_TOGETHER:
            raise ValueError(f"a budget is 1 to {MAX_TOKENS_TOGETHER:,} tokens")
    if not 0 <= pane.group_timeout <= MAX_GROUP_TIMEOUT:
        raise ValueError(f"a group's time-out is 0 to {MAX_GROUP_TIMEOUT:,}")
    make_prefill(pane.prefill, pane.num_slots, pane.max_batched_tokens)
    return pane


def _word(text: str | None) -> str | None:
    return text if text is not None and WORD.fullmatch(text) else None


def _step(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,8}", text) and int(text) <= MAX_STEP else None
