"""Records the shipped traces: what `python -m batchviz record` does.

Owns: the order of recording, and the warm-up before a real run. Must not know: pages. Presets of lengths alone need no
model, and where only such are asked for torch is not loaded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from batchviz.check import check_trace
from batchviz.cli_runs import Terminal
from batchviz.link import panes_from_text
from batchviz.panes import config_of
from batchviz.presets import PRESET_NAMES, PRESET_PANES, SCRIPTED_PRESET_NAMES, load_scenario
from batchviz.recordings import recording_path
from batchviz.runs import DEFAULT_SLOT_CAPACITY, Run, scenario_config, scripted_run
from batchviz.scenario import Scenario, ScenarioError
from batchviz.trace import RunConfig, Trace
from batchviz.trace_file import write_traces

if TYPE_CHECKING:
    from batchviz.live import LiveModel

WARM_UP_STEPS = 40


def record_presets(
    names: Sequence[str], device: str | None, dtype: str | None, terminal: Terminal, folder: Path | None = None
) -> Iterator[Path]:
    """Yields each file as it is written; without names, every preset. `folder` is where, if not among the assets.

    Raises ScenarioError for an unknown preset before anything is run.
    """
    known = SCRIPTED_PRESET_NAMES + PRESET_NAMES
    for name in names:
        if name not in known:
            raise ScenarioError(f"{name!r} is not a preset; there are {', '.join(known)}")
    for name in names or known:
        if name in SCRIPTED_PRESET_NAMES:
            yield _write(name, scripted_traces(name), folder)
    words = [name for name in names or known if name in PRESET_NAMES]
    if words:
        from batchviz.live import LiveModel  # loads torch

        live = LiveModel.load(time.perf_counter, device=device, dtype=dtype, progress=terminal.progress)
        for name in words:
            yield _write(name, _model_traces(live, load_scenario(name), terminal), folder)


def scripted_traces(name: str) -> list[Trace]:
    """The runs of a preset of lengths alone: no model, time modelled, the same on every machine."""
    scenario = load_scenario(name)
    return [_checked(scripted_run(scenario, config)) for config in recorded_configs(scenario)]


def _model_traces(live: LiveModel, scenario: Scenario, terminal: Terminal) -> list[Trace]:
    record = live.prepare(scenario, DEFAULT_SLOT_CAPACITY)
    configs = recorded_configs(scenario)
    warm_up = live.start(record, configs[-1])
    for _ in range(WARM_UP_STEPS):
        warm_up.step()
    traces: list[Trace] = []
    for config in configs:
        terminal.progress(f"recording {scenario.name}, {config.policy}", None)
        traces.append(_checked(live.start(record, config)))
    return traces


def recorded_configs(scenario: Scenario) -> list[RunConfig]:
    """Under what a preset is recorded: its own panes, else its policies under its settings."""
    panes = panes_from_text(PRESET_PANES.get(scenario.name, ""))
    return [config_of(pane) for pane in panes] or [scenario_config(scenario, policy) for policy in scenario.policies]


def _checked(run: Run) -> Trace:
    trace = run.finish()
    problems = check_trace(trace)
    assert not problems, problems
    return trace


def _write(name: str, traces: Sequence[Trace], folder: Path | None) -> Path:
    path = recording_path(name) if folder is None else folder / recording_path(name).name
    path.parent.mkdir(parents=True, exist_ok=True)
    write_traces(path, traces)
    return path
