"""Recording without a model: the shipped traces of lengths alone are what the engine makes today, and say what they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from batchviz.check import check_trace
from batchviz.cli_runs import Terminal
from batchviz.presets import SCRIPTED_PRESET_NAMES, load_scenario
from batchviz.record import record_presets, scripted_traces
from batchviz.recordings import load_recording, rescheduled
from batchviz.runs import make_config, scripted_run
from batchviz.scenario import ScenarioError
from batchviz.scheduler import Policy
from batchviz.trace import RunnerKind, Seconds
from batchviz.trace_file import read_traces


@pytest.mark.parametrize("name", SCRIPTED_PRESET_NAMES)
def test_the_shipped_trace_is_what_the_engine_makes_today(name: str) -> None:
    """If the schedule is meant to change: `python -m batchviz record` and the names of these presets."""
    assert load_recording(name) == tuple(scripted_traces(name))


@pytest.mark.parametrize("name", SCRIPTED_PRESET_NAMES)
def test_a_shipped_trace_of_lengths_says_that_no_model_ran_and_time_is_modelled(name: str) -> None:
    traces = load_recording(name)
    assert [trace.config.policy for trace in traces] == list(load_scenario(name).policies)
    for trace in traces:
        assert (trace.origin.runner, trace.origin.seconds) == (RunnerKind.SCRIPTED, Seconds.MODELLED)
        assert (trace.origin.model, trace.origin.date) == (None, "")
        assert check_trace(trace) == []


def test_a_shipped_trace_of_lengths_reschedules_like_a_fresh_run() -> None:
    replayed = rescheduled(load_recording("golden-lengths"), make_config(Policy.CONTINUOUS, 3))
    fresh = scripted_run(load_scenario("golden-lengths"), make_config(Policy.CONTINUOUS, 3)).finish()
    assert replayed.steps == fresh.steps
    assert replayed.origin.runner is RunnerKind.SCRIPTED


def test_equal_runs_are_equal_files(tmp_path: Path) -> None:
    (first,) = record_presets(["equal-lengths"], None, None, Terminal(), tmp_path)
    content = first.read_bytes()
    (second,) = record_presets(["equal-lengths"], None, None, Terminal(), tmp_path)
    assert second.read_bytes() == content
    assert read_traces(first) == load_recording("equal-lengths")


def test_an_unknown_name_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="'zebra' is not a preset; there are golden-lengths"):
        list(record_presets(["equal-lengths", "zebra"], None, None, Terminal(), tmp_path))
    assert not list(tmp_path.iterdir())


def test_recording_lengths_alone_loads_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from batchviz.record import record_presets\n"
        "from batchviz.cli_runs import Terminal\n"
        f"list(record_presets(['equal-lengths'], None, None, Terminal(), pathlib.Path({str(tmp_path)!r})))\n"
        "print({'torch', 'transformers'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
