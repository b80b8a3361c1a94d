"""The process that owns the model stays small, and as large as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.model

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import json, time, psutil, torch
from batchviz.live import LiveModel
from batchviz.presets import load_scenario
from batchviz.runs import scenario_config
from batchviz.scheduler import Policy

model = LiveModel.load(time.perf_counter, dtype="bfloat16", device="cpu")
scenario = load_scenario("four-slots")
config = scenario_config(scenario, Policy.CONTINUOUS, 8, 1024)
record = model.prepare(scenario, 1024)
resident = []
for _ in range(20):
    run = model.start(record, config, room=1024)
    run.engine._runner._cache.keys.fill_(1)
    run.engine._runner._cache.values.fill_(1)
    for _ in range(3):
        run.step()
    del run
    resident.append(psutil.Process().memory_info().rss)
print(json.dumps(resident))
"""


@pytest.mark.timeout(300)
def test_eight_slots_of_1024_in_bfloat16_take_at_most_1200_megabytes_and_twenty_runs_no_more() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    resident = json.loads(done.stdout.splitlines()[-1])
    assert max(resident) < 1.2e9
    assert resident[-1] - resident[2] < 20e6
