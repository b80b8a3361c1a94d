"""The terminal: what it prints, what it refuses, and how it exits. Runs the commands as a user would, in a process."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from batchviz import cli
from batchviz.scheduler import Policy
from batchviz.trace_file import read_traces
from tests.builders import GOLDEN_LENGTHS, scripted_trace

SCENARIO = """
title: Two lengths
num_slots: 2
requests:
  - {id: short, prompt_tokens: 10, output_tokens: 2}
  - {id: long, prompt_tokens: 10, output_tokens: 6}
  - {id: late, prompt_tokens: 10, output_tokens: 3, arrival: 1}
"""


def batchviz(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parent.parent
    return subprocess.run(
        [sys.executable, "-m", "batchviz", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd or root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "PYTHONWARNINGS": "error"},
    )


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(SCENARIO)
    return str(path)


def test_compare_json_is_the_contract(scenario: str) -> None:
    done = batchviz("compare", scenario, "--runner", "scripted", "--policies", "static,continuous", "--json")
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    assert data["schema"] == "batchviz-compare/1"
    static, continuous = data["runs"]
    assert static | {"duration_s": 0, "metrics": 0, "requests": 0, "kv": 0} == {
        "policy": "static", "num_slots": 2, "prefill": "mixed", "slot_capacity": 1024, "num_steps": 9, "duration_s": 0,
        "slot_steps": {"prefill": 3, "decode": 8, "stalled": 0, "held": 4, "empty": 3},
        "max_batched_tokens": None, "kv_budget_tokens": None, "group_timeout": 0,
        "runner": "scripted", "clock": "steps", "seconds": "modelled", "status": "complete", "exact": None,
        "metrics": 0, "requests": 0, "kv": 0,
    }  # fmt: skip
    for key in ("throughput_tok_s", "slot_utilization", "mean_e2e_steps", "mean_e2e_s", "mean_ttft_steps",
                "mean_ttft_s", "mean_tpot_s", "mean_queue_steps", "max_e2e_steps", "mean_queue_s", "max_e2e_s"):  # fmt: skip
        assert key in static["metrics"]
    assert static["kv"] == {
        "reserved_position_steps": 168 + 39, "used_position_steps": 140 + 33, "unused_position_steps": 34,
        "held_position_steps": 44, "used_share": 0.835749, "peak_reserved": 28, "peak_used": 26,
    }  # fmt: skip
    late = continuous["requests"][2]
    assert late | {"e2e_steps": 0} == {
        "id": "late", "slot": 0, "arrival": 1, "admitted_step": 2, "first_token_step": 2, "finished_step": 4,
        "delivered_step": 4, "e2e_steps": 0, "num_prompt_tokens": 10, "num_output_tokens": 3,
        "finish_reason": "length", "output": None,
    }  # fmt: skip


def test_compare_draws_the_slots(scenario: str) -> None:
    done = batchviz("compare", scenario)
    assert done.returncode == 0
    assert "slot 0   AA░░░░CCC" in done.stdout
    assert "slot 0   AACCC·" in done.stdout
    assert "static against continuous: 1.50× the steps" in done.stdout


def test_compare_says_how_a_run_differs_from_a_plain_one(scenario: str) -> None:
    knobs = ("--prefill", "exclusive", "--kv-budget-tokens", "1000", "--group-timeout", "2", "--policies", "static")
    shown = batchviz("compare", scenario, *knobs).stdout
    assert "static batching · 2 slots · exclusive prefill · KV budget 1,000 · groups wait up to 2 · " in shown
    chunked = batchviz("compare", scenario, "--prefill", "chunked", "--max-batched-tokens", "4").stdout
    assert " · chunked prefill · 4 tokens a step · " in chunked
    assert "· empty   - stalled" in chunked
    assert "- stalled" not in batchviz("compare", scenario).stdout


def test_sequential_always_says_one_slot(scenario: str) -> None:
    done = batchviz("compare", scenario, "--policies", "sequential", "--slots", "8", "--json")
    assert json.loads(done.stdout)["runs"][0]["num_slots"] == 1


WORKLOAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(
    f"2023-11-16 18:15:{second:02}.{second}000000,{20 * second},{second}" for second in range(10, 40, 3)
)


@pytest.fixture
def workload(tmp_path: Path) -> str:
    path = tmp_path / "azure.csv"
    path.write_text(WORKLOAD)
    return str(path)


def test_every_knob_reaches_the_run(scenario: str, tmp_path: Path) -> None:
    knobs = ("--prefill", "chunked", "--max-batched-tokens", "6", "--kv-budget-tokens", "30", "--group-timeout", "3.5")
    done = batchviz("compare", scenario, *knobs, "--json", "-o", str(tmp_path / "t.json"))
    assert done.returncode == 0, done.stderr
    static, continuous = json.loads(done.stdout)["runs"]
    for run, timeout in ((static, 3.5), (continuous, 0)):
        assert (run["prefill"], run["max_batched_tokens"], run["kv_budget_tokens"]) == ("chunked", 6, 30)
        assert run["group_timeout"] == timeout
        assert run["kv"]["peak_reserved"] <= 30
    assert static["slot_steps"]["stalled"] > 0
    assert [trace.config.max_batched_tokens for trace in read_traces(tmp_path / "t.json")] == [6, 6]
    checked = batchviz("check", str(tmp_path / "t.json"))
    assert checked.returncode == 0, checked.stdout


def test_a_recording_is_replayed_under_every_knob(tmp_path: Path) -> None:
    path = str(tmp_path / "t.json")
    done = batchviz("run", "four-slots", "--prefill", "exclusive", "--kv-budget-tokens", "400", "-o", path)
    assert done.returncode == 0, done.stderr
    (trace,) = read_traces(Path(path))
    assert (trace.origin.runner, trace.config.prefill, trace.config.kv_budget_tokens) == ("recorded", "exclusive", 400)
    assert batchviz("check", path).returncode == 0


def test_a_recorded_workload_is_cut_and_runs_in_seconds(workload: str) -> None:
    cut = ("--limit", "8", "--max-total-tokens", "600", "--rate", "0.5")
    done = batchviz("compare", workload, *cut, "--slots", "2", "--json")
    assert done.returncode == 0, done.stderr
    static = json.loads(done.stdout)["runs"][0]
    assert (static["clock"], static["runner"]) == ("seconds", "scripted")
    assert [request["id"] for request in static["requests"]] == [f"line-{n}" for n in range(2, 9)]
    assert static["requests"][-1]["arrival"] == 12, "seven requests, one every two seconds"
    assert "no model, lengths only" in batchviz("compare", workload, *cut).stdout


def test_run_writes_a_trace_that_check_accepts(scenario: str, tmp_path: Path) -> None:
    done = batchviz("run", scenario, "--policy", "static", "-o", str(tmp_path / "t.json"))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == str(tmp_path / "t.json")
    (trace,) = read_traces(tmp_path / "t.json")
    assert trace.config.policy == "static"
    checked = batchviz("check", str(tmp_path / "t.json"))
    assert (checked.returncode, "every rule holds" in checked.stdout) == (0, True)


def test_check_says_what_a_tampered_trace_breaks(scenario: str, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    batchviz("run", scenario, "-o", str(path))
    path.write_text(path.read_text().replace('"delivered":["short"]', '"delivered":[]'))
    done = batchviz("check", str(path))
    assert done.returncode == 1
    assert "steps[1]: delivered []; the policy delivers ['short']" in done.stdout


def test_presets_are_listed() -> None:
    names = [preset["name"] for preset in json.loads(batchviz("presets", "--json").stdout)]
    assert names[:4] == ["four-slots", "eight-chats", "sixteen-chats", "one-at-a-time"]


BAD = [
    (("compare", "no-such-preset"), "there is no preset and no file called 'no-such-preset'"),
    (("compare", "golden-lengths", "--policies", "magic"), "'magic' is not a policy; choose from sequential"),
    (("compare", "golden-lengths", "--policies", "static,static"), "a policy is named twice"),
    (("compare", "golden-lengths", "--slots", "0"), "--slots': Input should be greater than or equal to 1"),
    (("compare", "golden-lengths", "--slot-capacity", "8"), "a slot has 8; shorten the prompt"),
    (("compare", "eight-chats", "--runner", "scripted"), "has no output_tokens"),
    (("compare", "golden-lengths", "--prefill", "eager"), "--prefill"),
    (("compare", "golden-lengths", "--prefill", "chunked"), "chunked needs max_batched_tokens, at least one for each"),
    (("compare", "golden-lengths", "--max-batched-tokens", "9"), "belongs to prefill mode chunked; the mode is mixed"),
    (("run", "golden-lengths", "--prefill", "chunked", "--max-batched-tokens", "3"), "4 slots need at least 4"),
    (("run", "golden-lengths", "--kv-budget-tokens", "0"), "--kv-budget-tokens"),
    (("run", "golden-lengths", "--group-timeout", "3"), "belongs to the policy static; the policy here is continuous"),
    (("run", "golden-lengths", "--group-timeout", "nan"), "--group-timeout"),
    (("run", "golden-lengths", "--limit", "3"), "'golden-lengths' cannot be cut"),
    (("run", "no-such.csv", "--rate", "nan"), "the rate is nan; it must be a number of requests per second above 0"),
    (("run", "no-such.csv"), "no-such.csv does not exist; give the path of a YAML, JSON, CSV or JSONL file"),
    (("check", "no-such-file.json"), "does not exist"),
    (("check", "README.md"), "this is not JSON"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments: tuple[str, ...], sentence: str) -> None:
    done = batchviz(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_was_never_recorded_cannot_be_replayed(scenario: str) -> None:
    done = batchviz("compare", scenario, "--runner", "recorded")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no recording of 'two'; use --runner model or scripted" in done.stderr


def test_lengths_alone_can_be_replayed_and_still_say_that_no_model_ran() -> None:
    done = batchviz("compare", "golden-lengths", "--runner", "recorded", "--slots", "8")
    assert "no model, lengths only" in done.stdout


def test_help_names_every_command() -> None:
    text = batchviz("--help").stdout
    assert all(
        command in text
        for command in ("compare", "run", "record", "check", "presets", "fetch", "app", "serve", "doctor", "offline")
    )


def test_ctrl_c_ends_cleanly_and_keeps_what_was_finished(tmp_path: Path) -> None:
    many = "\n".join(f"  - {{id: r{i}, prompt_tokens: 9, output_tokens: 1000}}" for i in range(1000))
    (tmp_path / "many.yaml").write_text(f"title: Many\nnum_slots: 2\nrequests:\n{many}\n")
    command = [sys.executable, "-m", "batchviz", "run", "many.yaml", "-o", "t.json.gz"]
    environment = {"PYTHONPATH": str(Path(__file__).parent.parent), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    raw = gzip.decompress((tmp_path / "t.json.gz").read_bytes())
    assert b'"status": "cancelled"' in raw
    assert raw.count(b'"step":') > 10


@pytest.mark.parametrize(("name", "advice"), [("big.json", "named .gz it is smaller"), ("big.json.gz", "read at most")])
def test_a_trace_that_is_too_large_to_be_read_again_is_said(
    name: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = (scripted_trace(Policy.STATIC, 4, GOLDEN_LENGTHS),)
    cli._write(tmp_path / name, traces)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(cli, "MAX_FILE_BYTES", 1_000)
    cli._write(tmp_path / name, traces)
    said = capsys.readouterr().err
    assert advice in said
    assert f"{(tmp_path / name).stat().st_size:,} bytes" in said
