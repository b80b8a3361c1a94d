"""A scheduler of one's own is found, run, held to the rules that no policy may break, and never loaded from a file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchviz.check import check_trace
from batchviz.check_any import MAX_STUCK, AnyPolicyCheck
from batchviz.scheduler import Policy
from batchviz.trace import EMPTY_SLOT, Admission, Finish, SlotPhase, StepSnapshot, Trace
from batchviz.trace_file import trace_to_json, traces_from_json
from tests.builders import scripted_trace

ROOT = Path(__file__).parent.parent
BROKEN = """
from collections import deque
from batchviz.scheduler import ContinuousScheduler, Policy, Scheduler, WaitReason


class Loses(ContinuousScheduler):
    def schedule(self, step, now):
        if step == 3 and self.waiting:
            self.waiting.pop()
        return super().schedule(step, now)


class Evicts(ContinuousScheduler):
    def schedule(self, step, now):
        if step == 2:
            self.slots[0] = None
        return super().schedule(step, now)


class Never(ContinuousScheduler):
    def why_not_admit(self, now):
        return WaitReason.NO_FREE_SLOT


class Fails(ContinuousScheduler):
    def may_release(self):
        return 1 / 0


class Half(Scheduler):
    policy = Policy.CONTINUOUS


class Nothing:
    pass
"""


def batchviz(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "batchviz", *arguments]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=cwd, env=env)


def test_the_example_of_the_docs_runs_beside_the_others(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "POLICIES.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "shortest.py").write_text(code)
    assert len(code.splitlines()) <= 30
    scenario = tmp_path / "mixed.yaml"
    requests = "\n".join(
        f"  - {{id: r{i}, prompt_tokens: {length}, output_tokens: 4}}" for i, length in enumerate((9, 50, 40, 3, 20))
    )
    scenario.write_text(f"title: Mixed\nnum_slots: 2\nrequests:\n{requests}\n")
    policies = "continuous,shortest:ShortestPromptFirst"
    done = batchviz("compare", str(scenario), "--policies", policies, "--json", "-o", "both.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    usual, own = json.loads(done.stdout)["runs"]
    assert "policy_class" not in usual
    assert (own["policy"], own["policy_class"]) == ("continuous", "shortest:ShortestPromptFirst")
    admitted = sorted(own["requests"], key=lambda request: (request["admitted_step"], request["slot"]))
    assert [request["id"] for request in admitted] == ["r3", "r0", "r4", "r2", "r1"]
    shown = batchviz("compare", str(scenario), "--policies", policies, cwd=tmp_path).stdout
    assert "ShortestPromptFirst batching · 2 slots" in shown
    checked = batchviz("check", "both.json", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    named = batchviz("compare", "burst-and-trickle", "--policies", policies, "--slots", "2", cwd=tmp_path)
    assert named.returncode == 0, named.stderr


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ("broken:Loses", "broken:Loses breaks a rule at step 3: 1 are said to wait, and 2 do"),
        ("broken:Evicts", "broken:Evicts breaks a rule at step 2: r0 lost slot 0 before it was finished"),
        ("broken:Never", f"nobody was given work for {MAX_STUCK:,} steps, though 4 wait"),
        ("broken:Fails", "broken:Fails failed at step 0: ZeroDivisionError: division by zero"),
        ("broken:Half", "leaves a question open that a Scheduler must answer"),
        ("broken:Nothing", "'broken:Nothing' is not a scheduler; name a class"),
        ("broken:Absent", "'broken:Absent' is not a scheduler"),
        ("absent:Class", "there is no module 'absent' here"),
        ("wrong:Class", "'wrong:Class' could not be imported: SyntaxError"),
        ("lunch", "'lunch' is not a policy; choose from sequential, static, continuous or your own as module:Class"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said_in_a_sentence(tmp_path: Path, policy: str, sentence: str) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "wrong.py").write_text("def (")
    scenario = tmp_path / "four.yaml"
    requests = "\n".join(f"  - {{id: r{i}, prompt_tokens: 5, output_tokens: 9}}" for i in range(4))
    scenario.write_text(f"title: Four\nnum_slots: 2\nrequests:\n{requests}\n")
    done = batchviz("compare", str(scenario), "--policies", policy, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_name_in_a_trace_is_shown_and_never_loaded(tmp_path: Path) -> None:
    trace = scripted_trace(Policy.CONTINUOUS, 2, [3, 5, 2])
    evil = replace(trace, config=replace(trace.config, policy_class="evil:Class"))
    (tmp_path / "evil.py").write_text("open('was-loaded', 'w')")
    (tmp_path / "evil.trace.json").write_text(trace_to_json(evil))
    assert traces_from_json(trace_to_json(evil)) == (evil,)
    done = batchviz("check", "evil.trace.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    batchviz("debug", "evil.trace.json", "--commands", "/dev/null", cwd=tmp_path)
    assert not (tmp_path / "was-loaded").exists()


def first_problem(trace: Trace) -> tuple[int, str] | None:
    check = AnyPolicyCheck(trace.scenario.requests, trace.config)
    found = ((step.step, check.take(step)) for step in trace.steps)
    return next(((step, problem) for step, problem in found if problem is not None), None)


workloads = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 12), min_size=n, max_size=n), st.lists(st.integers(0, 15), min_size=n, max_size=n)
    )
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(Policy)), workloads, st.integers(1, 4))
def test_what_holds_for_any_policy_holds_for_ours(
    policy: Policy, workload: tuple[list[int], list[int]], slots: int
) -> None:
    lengths, arrivals = workload
    assert first_problem(scripted_trace(policy, slots, lengths, [float(arrival) for arrival in arrivals])) is None


def changed(trace: Trace, step: int, **fields: object) -> Trace:
    steps = list(trace.steps)
    steps[step] = steps[step]._replace(**fields)
    own = replace(trace.config, policy_class="x:Y")
    return replace(trace, steps=tuple(steps), config=own)


def test_each_rule_is_seen_when_it_is_broken() -> None:
    trace = scripted_trace(Policy.CONTINUOUS, 2, [3, 5, 2])
    steps: tuple[StepSnapshot, ...] = trace.steps
    slots = steps[1].slots
    broken = {
        "r0 arrives twice": changed(trace, 1, arrived=("r0",)),
        "r1 is admitted and does not wait": changed(trace, 1, admitted=(Admission("r1", 0),)),
        "r2 is admitted to slot 0, which is occupied": changed(trace, 1, admitted=(Admission("r2", 0),)),
        "r0 lost slot 0 before it was finished": changed(trace, 1, slots=(EMPTY_SLOT, slots[1])),
        "r0 is fed from position 4, and 10 are computed": changed(
            trace, 1, slots=(slots[0]._replace(position=4), slots[1])
        ),
        "r0 finishes and was not at work": changed(trace, 2, finished=steps[2].finished * 2),
        "r0 finishes by length with 2 of 3 tokens": changed(
            trace, 1, finished=(Finish("r0", steps[2].finished[0].reason),)
        ),
        "r0 has all its tokens and does not finish": changed(trace, 2, finished=()),
        "r1 is delivered twice, or before it is finished": changed(trace, 1, delivered=("r1",)),
        "5 are said to wait, and 1 do": changed(trace, 1, num_waiting=5),
    }
    for sentence, wrong in broken.items():
        (problem,) = check_trace(wrong)
        assert sentence in problem
    assert check_trace(changed(trace, 1)) == []
    assert steps[1].slots[0].phase is SlotPhase.DECODE
