"""`python -m batchviz debug` and `diff`: which session begins, where commands come from, how two traces are told apart.

Owns: that. Must not know: the debugger's commands, torch (the model's sessions are begun only if they are asked for).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from batchviz.cli_runs import RunnerChoice, RunOptions, Terminal, choose_runner, recording_of
from batchviz.debug_shell import Shell
from batchviz.debug_start import RecordedStart, ScriptedStart, TraceStart
from batchviz.debugger import DebugSession
from batchviz.diff import first_difference
from batchviz.presets import load_scenario
from batchviz.scheduler import Policy
from batchviz.trace import Trace
from batchviz.trace_file import is_trace, read_traces
from batchviz.workload_file import Cut

SCRIPT_WIDTH = 140


class ScriptError(ValueError):
    """A script of commands that could not be carried out. The message names the line."""


def begin_session(name: str, policy: Policy, cut: Cut, options: RunOptions, terminal: Terminal) -> DebugSession:
    """A session over a saved trace, or over a scenario that is run now."""
    if _is_trace_file(Path(name)):
        traces = read_traces(Path(name))
        chosen = next((trace for trace in traces if trace.config.policy is policy), traces[0])
        return DebugSession(TraceStart(chosen), chosen.config_at(0))
    scenario = load_scenario(name, cut)
    config = options.knobs.config(scenario, policy)
    runner = choose_runner(scenario, options.runner)
    if runner is RunnerChoice.SCRIPTED:
        return DebugSession(ScriptedStart(scenario, config.slot_capacity), config)
    if runner is RunnerChoice.RECORDED:
        return DebugSession(RecordedStart(recording_of(scenario)), config)

    from batchviz.debug_model import ModelStart, load_for_debugging  # loads torch

    model = load_for_debugging(options.model, options.device, options.dtype, terminal.progress)
    return DebugSession(ModelStart(model, scenario, config.slot_capacity, options.sampling), config)


def talk(session: DebugSession) -> None:
    """Reads commands from the terminal, with history and completion where the machine has readline."""
    Shell(session, Console(highlight=False)).cmdloop("`step` makes the first step, `help` lists the commands")


def carry_out(session: DebugSession, script: Path) -> None:
    """Runs a file of commands, each shown before what it says, as plain text. Raises ScriptError at the first failure."""
    shell = Shell(session, Console(highlight=False, color_system=None, force_terminal=False, width=SCRIPT_WIDTH))
    for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), start=1):
        command = line.strip()
        if not command or command.startswith("#"):
            continue
        print(f"{shell.prompt}{command}", flush=True)
        is_over = shell.onecmd(command)
        sys.stdout.flush()
        if shell.has_failed:
            raise ScriptError(f"{script}, line {number}: this command could not be carried out")
        if is_over:
            return


def tell_difference(first: Path, second: Path) -> bool:
    """Says where two traces part, and why; False if they do not."""
    one, other = _only(first), _only(second)
    found = first_difference(one, other)
    if found is None:
        print(f"the same to the end: {len(one.steps):,} steps, every decision, every token")
        return False
    where = f"step {found.step}" + (f", slot {found.slot}" if found.slot is not None else "")
    print(f"{where}{f', request {found.request_id}' if found.request_id else ''}: {found.what}")
    for path, trace, lines in ((first, one, found.decided[0]), (second, other, found.decided[1])):
        config = trace.config_at(found.step)
        print(f"{path} ({config.policy}, {config.num_slots} slots):")
        print("\n".join(f"  - {line}" for line in lines) or "  nothing that the other did not decide as well")
    return True


def _is_trace_file(path: Path) -> bool:
    if path.suffix not in (".json", ".gz") or not path.is_file():
        return False
    with path.open("rb") as file:
        return is_trace(file.read(200))


def _only(path: Path) -> Trace:
    traces: Sequence[Trace] = read_traces(path)
    if len(traces) != 1:
        kinds = ", ".join(trace.config.policy for trace in traces)
        raise ValueError(f"{path} holds {len(traces)} runs ({kinds}); diff takes files of one run each")
    return traces[0]
