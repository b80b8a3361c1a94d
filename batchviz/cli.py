"""The terminal: `python -m batchviz COMMAND`.

Owns: commands, options, exit codes (0 well, 1 a broken rule or a failed run, 2 bad input, 130 interrupted). Must not know: how
anything is computed. Results go to stdout, everything else to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from batchviz import __version__
from batchviz.check import check_trace
from batchviz.cli_doctor import doctor
from batchviz.cli_export import export
from batchviz.cli_machine import bench, fetch, record
from batchviz.cli_offline import offline
from batchviz.cli_options import (
    BatchedTokensOption,
    CapacityOption,
    DeviceOption,
    DtypeOption,
    GroupTimeoutOption,
    KvBudgetOption,
    LimitOption,
    ModelOption,
    OutputOption,
    PrefillOption,
    RateOption,
    RunnerOption,
    ScenarioArgument,
    SeedOption,
    SlotsOption,
    TemperatureOption,
    TopPOption,
    TotalTokensOption,
)
from batchviz.cli_runs import Knobs, RunOptions, Terminal, make_traces
from batchviz.cli_serve import open_app, serve
from batchviz.cli_site import site
from batchviz.export.compare_json import to_compare
from batchviz.export.text import to_text
from batchviz.own_policy import OwnPolicy, find_policy
from batchviz.presets import list_presets, list_scripted_presets, load_scenario
from batchviz.recordings import has_recording
from batchviz.request import SamplingParams
from batchviz.scenario import Scenario
from batchviz.scheduler import Policy
from batchviz.trace import Trace, TraceStatus
from batchviz.trace_file import MAX_FILE_BYTES, read_traces, write_traces
from batchviz.workload_file import Cut

INTERRUPTED = 130

app = typer.Typer(
    name="batchviz",
    help="See, step by step and slot by slot, how a language model serves many requests at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def compare(
    scenario: ScenarioArgument,
    runner: RunnerOption = None,
    policies: Annotated[
        str | None, typer.Option(help="sequential, static, continuous, module:Class; with commas.")
    ] = None,
    slots: SlotsOption = None,
    slot_capacity: CapacityOption = 1024,
    prefill: PrefillOption = None,
    max_batched_tokens: BatchedTokensOption = None,
    kv_budget_tokens: KvBudgetOption = None,
    group_timeout: GroupTimeoutOption = None,
    limit: LimitOption = None,
    max_total_tokens: TotalTokensOption = None,
    rate: RateOption = None,
    seed: SeedOption = 0,
    temperature: TemperatureOption = 0.0,
    top_p: TopPOption = 1.0,
    model: ModelOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print batchviz-compare/1 instead of a picture.")] = False,
    output: OutputOption = None,
) -> None:
    """Run the same requests under several policies, and show the slots and what each user waited."""
    sampling = SamplingParams(temperature, top_p, seed)
    knobs = Knobs(slots, slot_capacity, prefill, max_batched_tokens, kv_budget_tokens, group_timeout)
    options = RunOptions(runner, knobs, sampling, model, device, dtype)
    with Terminal() as terminal:
        loaded = load_scenario(scenario, Cut(limit, max_total_tokens, rate))
        traces = make_traces(loaded, _policies(policies, loaded), options, terminal)
        if output is not None:
            _write(output, traces)
    if as_json:
        print(json.dumps(to_compare(traces), ensure_ascii=False, indent=2))
    else:
        sys.stdout.write(f"{_clean(loaded.title)}\n{_clean(loaded.look_for)}\n\n{to_text(traces, terminal.width)}")
    _exit_by_status(traces)


@app.command()
def run(
    scenario: ScenarioArgument,
    runner: RunnerOption = None,
    policy: Annotated[Policy, typer.Option(help="How to batch.")] = Policy.CONTINUOUS,
    slots: SlotsOption = None,
    slot_capacity: CapacityOption = 1024,
    prefill: PrefillOption = None,
    max_batched_tokens: BatchedTokensOption = None,
    kv_budget_tokens: KvBudgetOption = None,
    group_timeout: GroupTimeoutOption = None,
    limit: LimitOption = None,
    max_total_tokens: TotalTokensOption = None,
    rate: RateOption = None,
    seed: SeedOption = 0,
    temperature: TemperatureOption = 0.0,
    top_p: TopPOption = 1.0,
    model: ModelOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    output: OutputOption = None,
) -> None:
    """Run one policy and write its trace; the trace's path is the last line on stdout."""
    sampling = SamplingParams(temperature, top_p, seed)
    knobs = Knobs(slots, slot_capacity, prefill, max_batched_tokens, kv_budget_tokens, group_timeout)
    options = RunOptions(runner, knobs, sampling, model, device, dtype)
    with Terminal() as terminal:
        loaded = load_scenario(scenario, Cut(limit, max_total_tokens, rate))
        traces = make_traces(loaded, (policy,), options, terminal)
        path = output or Path(f"{loaded.name}-{policy}.trace.json")
        _write(path, traces)
    print(path)
    _exit_by_status(traces)


@app.command()
def check(traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="Trace or bundle files.")]) -> None:
    """Read traces whole and hold them against every rule of scheduling."""
    broken = False
    with Terminal():
        for path in traces:
            members = read_traces(path)
            problems = [
                f"{path}, {trace.config.policy}: {problem}" for trace in members for problem in check_trace(trace)
            ]
            for problem in problems:
                print(_clean(problem))
            if not problems:
                steps = sum(len(trace.steps) for trace in members)
                print(f"{path}: {len(members)} run{'' if len(members) == 1 else 's'}, {steps} steps, every rule holds")
            broken = broken or bool(problems)
    raise typer.Exit(1 if broken else 0)


@app.command()
def presets(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """List the scenarios that come with batchviz."""
    known = (*list_presets(), *list_scripted_presets())
    if as_json:
        print(json.dumps([_preset(scenario) for scenario in known], ensure_ascii=False, indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0))
    for heading in ("preset", "requests", "slots", "what to look for"):
        table.add_column(heading, overflow="fold")
    for scenario in known:
        table.add_row(scenario.name, str(len(scenario.requests)), str(scenario.num_slots), scenario.look_for)
    Console().print(table)


@app.command()
def debug(
    scenario: ScenarioArgument,
    policy: Annotated[Policy, typer.Option(help="How to batch.")] = Policy.CONTINUOUS,
    runner: RunnerOption = None,
    slots: SlotsOption = None,
    slot_capacity: CapacityOption = 1024,
    prefill: PrefillOption = None,
    max_batched_tokens: BatchedTokensOption = None,
    kv_budget_tokens: KvBudgetOption = None,
    group_timeout: GroupTimeoutOption = None,
    limit: LimitOption = None,
    max_total_tokens: TotalTokensOption = None,
    rate: RateOption = None,
    seed: SeedOption = 0,
    temperature: TemperatureOption = 0.0,
    top_p: TopPOption = 1.0,
    model: ModelOption = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    commands: Annotated[Path | None, typer.Option(help="Carry out the commands of this file, as plain text.")] = None,
) -> None:
    """Drive a run by hand, in the manner of pdb: a step at a time, to a breakpoint, back; SCENARIO or a .trace.json."""
    from batchviz.cli_debug import begin_session, carry_out, talk

    knobs = Knobs(slots, slot_capacity, prefill, max_batched_tokens, kv_budget_tokens, group_timeout)
    options = RunOptions(runner, knobs, SamplingParams(temperature, top_p, seed), model, device, dtype)
    with Terminal() as terminal:
        session = begin_session(scenario, policy, Cut(limit, max_total_tokens, rate), options, terminal)
    with Terminal():
        if commands is not None:
            carry_out(session, commands)
        else:
            talk(session)


@app.command()
def diff(
    first: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace.")],
    second: Annotated[Path, typer.Argument(metavar="TRACE", help="Another one.")],
) -> None:
    """Two traces beside each other up to the first difference, and why; exit code 1 if there is one."""
    from batchviz.cli_debug import tell_difference

    with Terminal():
        differs = tell_difference(first, second)
    raise typer.Exit(1 if differs else 0)


for tool in (export, record, fetch, bench, doctor, offline, serve, site):
    app.command()(tool)
app.command("app")(open_app)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    """See, step by step and slot by slot, how a language model serves many requests at once."""
    if version:
        print(__version__)
        raise typer.Exit()


def _write(path: Path, traces: tuple[Trace, ...]) -> None:
    write_traces(path, traces)
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        advice = (
            "the page and `check` read at most" if path.suffix == ".gz" else "named .gz it is smaller; read is at most"
        )
        print(f"{path} has {size:,} bytes; {advice} {MAX_FILE_BYTES:,}", file=sys.stderr)


def _policies(text: str | None, scenario: Scenario) -> tuple[Policy | OwnPolicy, ...]:
    if text is None:
        return scenario.policies
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in list(Policy) and ":" not in name]
    if unknown or len(set(names)) != len(names):
        what = f"{unknown[0]!r} is not a policy" if unknown else "a policy is named twice"
        raise ValueError(
            f"--policies: {what}; choose from {', '.join(Policy)} or your own as module:Class, each once, with commas between"
        )
    return tuple(find_policy(name) if ":" in name else Policy(name) for name in names)


def _preset(scenario: Scenario) -> dict[str, object]:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "look_for": scenario.look_for,
        "num_slots": scenario.num_slots,
        "num_requests": len(scenario.requests),
        "policies": list(scenario.policies),
        "recorded": has_recording(scenario.name),
    }


def _clean(text: str) -> str:
    """Text from a file, safe to print on a terminal."""
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


def _exit_by_status(traces: tuple[Trace, ...]) -> None:
    if any(trace.status is TraceStatus.CANCELLED for trace in traces):
        raise typer.Exit(INTERRUPTED)
    if any(trace.status is TraceStatus.ERROR for trace in traces):
        raise typer.Exit(1)


def main() -> NoReturn:
    """Entry of `python -m batchviz`."""
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:  # all is written; torch takes seconds to be taken down, and nobody wants to wait
            sys.stdout.flush()  # stderr keeps nothing back
            os._exit(INTERRUPTED)
        raise
    raise SystemExit(0)
