"""The terminal's commands about this machine: the weights, the shipped runs, what a step costs.

Owns: `record`, `fetch`, `bench`. Must not know: how anything is recorded, fetched or measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from batchviz.bench_report import check_place, print_tables, write_into
from batchviz.cli_bench import Contest, measure
from batchviz.cli_options import DeviceOption, DtypeOption
from batchviz.cli_runs import Terminal


def record(
    presets: Annotated[list[str] | None, typer.Argument(metavar="[PRESET]...", help="Default: all of them.")] = None,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
) -> None:
    """Record the shipped traces anew: words from the real model on this machine, lengths alone without it."""
    from batchviz.record import record_presets

    with Terminal() as terminal:
        for path in record_presets(presets or [], device, dtype, terminal):
            print(path)


def fetch() -> None:
    """Get the default weights, check and convert them; the last line on stdout is the folder of the model."""
    from batchviz.model.weights import ensure_weights  # loads torch when it converts

    with Terminal() as terminal:
        folder = ensure_weights(terminal.progress)
    print(folder)


def bench(
    engine: Annotated[bool, typer.Option("--engine", help="Scheduling alone, without a model. The default.")] = False,
    model: Annotated[bool, typer.Option("--model", help="Steps of the real model at several batch sizes.")] = False,
    slots: Annotated[str | None, typer.Option(help="With the model and beside --peers: 1,8,32 by default.")] = None,
    peers: Annotated[str | None, typer.Option(help="generate, generate_batch, llama_cpp; with commas between.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One slot count, few tokens: within a minute.")] = False,
    device: DeviceOption = None,
    dtype: DtypeOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    into: Annotated[Path | None, typer.Option(help="Beside --peers: write the table into this file, too.")] = None,
) -> None:
    """Measure what a step costs on this machine, alone or beside other engines."""
    with Terminal() as terminal:
        beside = slots is not None or peers is not None or quick
        contest = Contest.asked(slots, peers, quick) if beside else None
        if into is not None and contest is None:
            raise ValueError("--into: there is a table only beside --peers")
        if into is not None:
            check_place(into)
        is_engine = engine or not (model or beside)
        measured = measure(terminal, engine=is_engine, model=model, contest=contest, device=device, dtype=dtype)
    if as_json:
        print(json.dumps(measured, ensure_ascii=False, indent=2))
    else:
        print_tables(measured)
    if into is not None:
        write_into(into, measured)
