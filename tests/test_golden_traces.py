"""The whole schedule of the golden workload, step by step, as files under review. `make golden` writes them anew."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from batchviz.check import check_trace
from batchviz.presets import load_scenario
from batchviz.runs import make_config, scripted_run
from batchviz.scheduler import Policy
from batchviz.trace_file import read_traces, trace_to_json

FOLDER = Path(__file__).parent / "golden"
GOLDEN = MappingProxyType(
    {
        f"{policy}-{slots}": FOLDER / f"{policy}-{slots}.json"
        for policy, slots in [
            ("sequential", 1),
            ("static", 4),
            ("continuous", 4),
        ]
    }
)


def golden_text(name: str) -> str:
    """What the engine does today."""
    policy, slots = name.split("-")
    run = scripted_run(load_scenario("golden-lengths"), make_config(Policy(policy), int(slots)))
    return trace_to_json(run.finish(), durations=False)


@pytest.mark.parametrize("name", list(GOLDEN))
def test_the_schedule_is_the_golden_one(name: str) -> None:
    assert golden_text(name) == GOLDEN[name].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(GOLDEN))
def test_the_golden_trace_keeps_every_rule(name: str) -> None:
    (trace,) = read_traces(GOLDEN[name])
    assert check_trace(trace) == []
