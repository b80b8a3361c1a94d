"""`python -m batchviz bench`: which measurements are made, and how they are printed.

Owns: that. Must not know: how anything is measured. The model's own are made only if they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from batchviz.bench import BENCH_SCHEMA, measure_engine, to_plain
from batchviz.cli_runs import Terminal
from batchviz.machine import describe_machine


def measure(terminal: Terminal, *, engine: bool, model: bool, device: str | None, dtype: str | None) -> dict[str, Any]:
    """Plain data of what was asked for, with the machine it was measured on."""
    measured: dict[str, Any] = {"schema": BENCH_SCHEMA, "machine": describe_machine()}
    if engine:
        terminal.progress("measuring the engine", None)
        measured["engine"] = to_plain(measure_engine())
    if model:
        from batchviz.model.bench import measure_steps  # loads torch
        from batchviz.model.load import load_model

        loaded = load_model(None, device=device, dtype=dtype, progress=terminal.progress)
        terminal.progress("measuring the model", None)
        measured["model"] = {
            "name": loaded.record.name,
            "device": loaded.record.device,
            "dtype": loaded.record.dtype,
            "steps": [timing._asdict() for timing in measure_steps(loaded)],
        }
    return measured


def print_tables(measured: Mapping[str, Any]) -> None:
    """A small table for each measurement, on stdout."""
    console = Console(highlight=False)
    console.print(measured["machine"], markup=False)
    if (engine := measured.get("engine")) is not None:
        speeds = _table("scripted engine, snapshots kept", "slots", "steps/s of processor time")
        for speed in engine["speeds"]:
            speeds.add_row(speed["policy"], str(speed["num_slots"]), f"{speed['steps_per_s']:,}")
        console.print(speeds)
        growths = _table("cost of a step with so many around", "few", "µs", "many", "µs", "ratio")
        for growth in engine["growths"]:
            growths.add_row(
                growth["what"],
                f"{growth['few']:,}",
                f"{growth['few_us']:.1f}",
                f"{growth['many']:,}",
                f"{growth['many_us']:.1f}",
                f"{growth['ratio']:.2f}",
            )
        console.print(growths)
    if (model := measured.get("model")) is not None:
        steps = _table(
            f"{model['name']}, {model['dtype']} on {model['device']}: sequences", "ms a step", "tokens/s", "×1"
        )
        for timing in model["steps"]:
            steps.add_row(
                str(timing["batch_size"]),
                f"{timing['median_s'] * 1000:.1f}",
                f"{timing['tokens_per_s']:,.0f}",
                f"{timing['times_one']:.2f}",
            )
        console.print(steps)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    return table
