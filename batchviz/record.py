"""Records the shipped traces from the real model: what `python -m batchviz record` does.

Owns: the order of recording and the warm-up before it. Must not know: pages. Importing it loads torch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from batchviz.check import check_trace
from batchviz.cli_runs import Terminal
from batchviz.live import LiveModel
from batchviz.presets import PRESET_NAMES, load_scenario
from batchviz.recordings import recording_path
from batchviz.runs import DEFAULT_SLOT_CAPACITY, make_config
from batchviz.scenario import ScenarioError
from batchviz.trace import Trace
from batchviz.trace_file import write_traces

WARM_UP_STEPS = 40


def record_presets(names: Sequence[str], device: str | None, dtype: str | None, terminal: Terminal) -> Iterator[Path]:
    """Yields each file as it is written. Raises ScenarioError for an unknown preset before anything is run."""
    for name in names:
        if name not in PRESET_NAMES:
            raise ScenarioError(f"{name!r} is not a preset with words; there are {', '.join(PRESET_NAMES)}")
    live = LiveModel.load(time.perf_counter, device=device, dtype=dtype, progress=terminal.progress)
    for name in names or PRESET_NAMES:
        scenario = load_scenario(name)
        record = live.prepare(scenario, DEFAULT_SLOT_CAPACITY)
        configs = [make_config(policy, scenario.num_slots) for policy in scenario.policies]
        warm_up = live.start(record, configs[-1])
        for _ in range(WARM_UP_STEPS):
            warm_up.step()
        traces: list[Trace] = []
        for config in configs:
            terminal.progress(f"recording {name}, {config.policy}", None)
            trace = live.start(record, config).finish()
            problems = check_trace(trace)
            assert not problems, problems
            traces.append(trace)
        path = recording_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_traces(path, traces)
        yield path
