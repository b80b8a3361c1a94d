"""The scenarios that come with batchviz, and the one way in for whoever names a scenario: a preset or a file.

Owns: the presets' names and order. Must not know: engines, models, recordings, pages. The presets are scenario files
like anybody's (`preset_files/*.yaml`), read by the same reader.
"""

from __future__ import annotations

import difflib
import os
from importlib import resources
from types import MappingProxyType

from batchviz.given_file import shown_source
from batchviz.scenario import Scenario, ScenarioError, shown_text
from batchviz.scenario_file import parse_scenario, read_scenario_file
from batchviz.workload_file import NO_CUT, WORKLOAD_SUFFIXES, Cut, read_workload_file

PRESET_NAMES = (  # words, for the real model
    "four-slots",
    "eight-chats",
    "sixteen-chats",
    "one-at-a-time",
    "few-users",
    "long-prompt",
    "burst-and-trickle",
)
# Panes other than the scenario's policies under its own settings, written as in a link (link.py); recorded so as well.
PRESET_PANES = MappingProxyType({"long-prompt": "continuous-4-exclusive,continuous-4-chunked-b64"})
SCRIPTED_PRESET_NAMES = ("golden-lengths", "equal-lengths", "long-one-last", "static-worse-than-sequential")  # no words


def list_presets() -> tuple[Scenario, ...]:
    """The presets for the real model, in the order in which to show them. The page opens with the first."""
    return tuple(map(_read_preset, PRESET_NAMES))


def list_scripted_presets() -> tuple[Scenario, ...]:
    """The presets of exact lengths without words, for runs without a model, in the order in which to show them."""
    return tuple(map(_read_preset, SCRIPTED_PRESET_NAMES))


def load_scenario(name_or_path: str, cut: Cut = NO_CUT) -> Scenario:
    """A preset by its name, or a YAML, JSON, CSV or JSONL file by its path. Raises ScenarioError: one sentence.

    `cut` is for the recorded workloads, CSV and JSONL, which may hold more than a scenario may.
    """
    known = PRESET_NAMES + SCRIPTED_PRESET_NAMES
    is_workload = name_or_path.lower().endswith(WORKLOAD_SUFFIXES)
    if cut != NO_CUT and not is_workload:
        raise ScenarioError(f"{shown_text(name_or_path)} cannot be cut: a limit or a rate is for .csv and .jsonl files")
    if name_or_path in known:
        return _read_preset(name_or_path)
    looks_like_name = os.sep not in name_or_path and "/" not in name_or_path and "." not in name_or_path
    if looks_like_name and not _exists(name_or_path):
        close = difflib.get_close_matches(name_or_path[:80].lower(), known, n=1)
        advice = f"did you mean {close[0]}?" if close else f"the presets are {', '.join(known)}"
        raise ScenarioError(f"there is no preset and no file called {shown_text(name_or_path, 80)}; {advice}")
    if not _exists(name_or_path):
        message = f"{shown_source(name_or_path)} does not exist; give the path of a YAML, JSON, CSV or JSONL file"
        raise ScenarioError(f"{message}, or a preset: {', '.join(known)}")
    return read_workload_file(name_or_path, cut) if is_workload else read_scenario_file(name_or_path)


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def _read_preset(name: str) -> Scenario:
    file_name = f"{name}.yaml"
    content = (resources.files("batchviz") / "preset_files" / file_name).read_bytes()
    return parse_scenario(content, file_name, is_json=False, default_name=name)
