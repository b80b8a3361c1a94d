"""The debugger in the terminal says what it said before, refuses what it cannot do, and the how-to is true."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from batchviz.check import check_trace
from batchviz.debug_shell import Shell
from batchviz.debug_start import ScriptedStart
from batchviz.debugger import DebugSession
from batchviz.presets import load_scenario
from batchviz.runs import make_config
from batchviz.scheduler import Policy
from batchviz.trace_file import read_traces
from tests.golden.debug_session import COMMANDS, EXPECTED, debug_text

ROOT = Path(__file__).parent.parent


def new_shell(policy: Policy = Policy.STATIC, width: int = 140) -> tuple[Shell, io.StringIO]:
    out = io.StringIO()
    session = DebugSession(ScriptedStart(load_scenario("golden-lengths"), 1024), make_config(policy, 4))
    return Shell(session, Console(file=out, highlight=False, color_system=None, width=width)), out


def said(shell: Shell, out: io.StringIO, *commands: str) -> str:
    """What the last of the commands said."""
    for command in commands:
        out.seek(0)
        out.truncate()
        shell.onecmd(command)
    return out.getvalue()


def test_a_scripted_session_says_what_it_said_before() -> None:
    assert debug_text(COMMANDS.read_text(encoding="utf-8")) == EXPECTED.read_text(encoding="utf-8")


def test_the_terminal_carries_out_a_script_and_stops_where_it_cannot(tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("step\n\n# a comment\nstpe\nstep\n")
    command = [sys.executable, "-m", "batchviz", "debug", "golden-lengths", "--commands", str(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.count("(batchviz) ") == 2
    assert "'stpe' is not a command; did you mean `step`?" in done.stdout
    assert "line 4: this command could not be carried out" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout


def test_commands_come_from_a_pipe_too() -> None:
    command = [sys.executable, "-m", "batchviz", "debug", "golden-lengths"]
    done = subprocess.run(command, cwd=ROOT, input="step\nwhy H\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "H waits (step 1 of its wait)" in done.stdout


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("why Z", "no request has the id 'Z'"),
        ("why", "why needs a request"),
        ("goto x", "'x' is not a whole number"),
        ("goto 9999", "the run has 320 steps; the last one is 319"),
        ("back", "this is the first step"),
        ("break lunch", "'lunch' is not a condition"),
        ("delete 3", "there is no breakpoint 3; there are 0"),
        ("inject", "inject needs an id"),
        ("inject A prompt=3 output=2", "is used twice"),
        ("inject X prompt=3 out=2", "'out' is not an option here; there are prompt, output, max"),
        ("inject X prompt=3 max=2", "has no output_tokens"),
        ("abort Z", "no request has the id 'Z'"),
        ("fork lunch", "'lunch' is not a policy; there are sequential, static, continuous"),
        ("fork prefill=lunch", "'lunch' is not a prefill mode; there are mixed"),
        ("fork prefill=chunked", "max_batched_tokens"),
        ("fork static slots=2", "slot 3 is occupied"),
        ("use 2", "there is no run 2; there are 1"),
        ("save", "save needs a file"),
        ("save /nowhere/x.trace.json", "No such file"),
        ("help lunch", "'lunch' is not a command"),
        ("\x1b[31mred", r"'\x1b[31mred' is not a command"),
        ("why 'unclosed", "no request has the id"),
        ("inject 'unclosed", "No closing quotation"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(command: str, sentence: str) -> None:
    shell, out = new_shell()
    shell.onecmd("step")
    text = said(shell, out, command)
    assert text.startswith("error: ")
    assert sentence in text
    assert shell.has_failed
    assert "0" in said(shell, out, "goto 0")  # the session goes on


def test_short_forms_are_the_long_ones_and_an_empty_line_is_the_last() -> None:
    shell, out = new_shell()
    assert "step 2 " in said(shell, out, "s", "s", "s")
    assert "step 3 " in said(shell, out, "")
    assert "step 2 " in said(shell, out, "b")
    for name in ("step", "until", "fork", "break", "save"):
        assert name in said(shell, out, "h")
    assert "fork [POLICY]" in said(shell, out, "h fork")
    assert shell.onecmd("q")


def test_the_source_is_the_real_function() -> None:
    shell, out = new_shell()
    text = said(shell, out, "into", "source")
    assert "def schedule(self, step: int, now: float) -> SchedulerOutput:" in text
    assert "while self.waiting and self.why_head_waits(now) is None:" in text


def test_a_run_and_its_fork_are_saved_side_by_side(tmp_path: Path) -> None:
    shell, out = new_shell()
    path = tmp_path / "both.trace.json"
    said(shell, out, "goto 20", "fork continuous slots=6", "s 10", f"save {path} all")
    first, second = read_traces(path)
    assert (len(first.steps), len(second.steps)) == (21, 31)
    assert check_trace(first) == check_trace(second) == []
    assert first.steps == second.steps[:21]


def test_the_how_to_is_true() -> None:
    text = (ROOT / "DEBUGGING.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\(batchviz\) (.*)$", text, re.MULTILINE)
    shell, out = new_shell()
    answers = {command: said(shell, out, command) for command in commands}
    assert not any(answer.startswith("error") for answer in answers.values())
    assert "first come, first served, and E is first" in answers["why G"]
    assert "static batching admits nobody while the group in the slots runs" in answers["why E"]
    assert answers["slots"].count("held") == 2
    assert "the same 6 steps (checked)" in answers["fork continuous"]
    delivered = {command: int(re.findall(r"step (\d+)", answers[command])[0]) for command in commands[-2:]}
    assert delivered["until delivered G"] < 60
    first_token, _ = new_shell()
    assert first_token.current.run_until([]).message == "the run is over"
    assert next(first_token.current.trace.tokens("G"))[0] == 200
    assert len(text.splitlines()) <= 50


def test_snapshots_and_engines_are_pleasant_to_print() -> None:
    from batchviz.engine import Engine
    from batchviz.runner import ScriptedRunner
    from batchviz.scheduler import make_scheduler
    from tests.builders import requests_of

    engine = Engine(make_scheduler(Policy.STATIC, 2), ScriptedRunner())
    engine.add_all(requests_of([1, 3, 2]))
    assert repr(engine) == "<Engine: step 0 is next, 3 not arrived, <static: slots [empty, empty], 0 wait>>"
    assert [str(snapshot) for snapshot in engine.run(2)] == [
        "step    0 │ ▸r0       ▸r1      │ 1 wait, r0 finished",
        "step    1 │ ░r0       r1       │ 1 wait",
    ]
    assert repr(engine) == "<Engine: step 2 is next, 0 not arrived, <static: slots [r0, r1], 1 wait>>"
    assert repr(engine._sequences["r1"]) == "<r1 running in slot 1: 11 positions computed, 2 of 3 tokens>"
