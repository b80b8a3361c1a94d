"""`python -m batchviz bench`: which measurements are made, and how they are printed.

Owns: that. Must not know: how anything is measured. The model's own are made only if they are asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from batchviz.bench import BENCH_SCHEMA, measure_engine, to_plain
from batchviz.cli_runs import Terminal
from batchviz.machine import describe_machine

DEFAULT_PEERS = "generate"
DEFAULT_SLOTS = "1,8,32"
QUICK_SLOTS = "8"
MAX_BENCH_SLOTS = 64
PROMPT_TOKENS = 40
NUM_TOKENS, QUICK_TOKENS = 64, 12
REPEATS, QUICK_REPEATS = 3, 1


class Contest(NamedTuple):
    """What is measured beside what."""

    slots: tuple[int, ...]
    peers: tuple[str, ...]
    num_tokens: int
    repeats: int

    @classmethod
    def asked(cls, slots: str | None, peers: str | None, quick: bool) -> Contest:
        """From the options, with what is usual where nothing is said. Raises ValueError with one sentence."""
        numbers = [part.strip() for part in (slots or (QUICK_SLOTS if quick else DEFAULT_SLOTS)).split(",")]
        if not all(number.isascii() and number.isdigit() and 1 <= int(number) <= MAX_BENCH_SLOTS for number in numbers):
            raise ValueError(
                f"--slots: {slots!r}; it must be whole numbers from 1 to {MAX_BENCH_SLOTS}, with commas between"
            )
        if quick and len(numbers) > 1:
            raise ValueError("--quick measures one number of slots; leave the others out")
        names = tuple(name.strip() for name in (DEFAULT_PEERS if peers is None else peers).split(",") if name.strip())
        return cls(
            tuple(dict.fromkeys(map(int, numbers))),
            names,
            QUICK_TOKENS if quick else NUM_TOKENS,
            QUICK_REPEATS if quick else REPEATS,
        )


def measure(
    terminal: Terminal, *, engine: bool, model: bool, contest: Contest | None, device: str | None, dtype: str | None
) -> dict[str, Any]:
    """Plain data of what was asked for, with the machine it was measured on."""
    measured: dict[str, Any] = {"schema": BENCH_SCHEMA, "machine": describe_machine()}
    if engine:
        terminal.progress("measuring the engine", None)
        measured["engine"] = to_plain(measure_engine())
    if contest is not None:
        measured |= _contest(terminal, contest, device, dtype)
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


def _contest(terminal: Terminal, contest: Contest, device: str | None, dtype: str | None) -> dict[str, Any]:
    """This engine beside others, and the machine's limits."""
    from importlib.metadata import version

    from batchviz.model import peer_bench  # loads torch
    from batchviz.model.device import DTYPES
    from batchviz.model.load import load_model
    from batchviz.model.peers import Own, make_peers
    from batchviz.model.weights import ensure_weights

    busy = peer_bench.busy_sentence()
    if busy is not None:
        print(busy, file=sys.stderr)
    loaded = load_model(None, device=device, dtype=dtype, progress=terminal.progress)
    if loaded.record.device != "cpu":
        raise ValueError("beside other engines only processors are measured; say --device cpu")
    source = str(ensure_weights(terminal.progress))
    peers, left_out = make_peers(contest.peers, source, DTYPES[loaded.record.dtype])
    rows, overhead = peer_bench.measure_peers(
        Own(loaded, loaded.make_detokenizer),
        peers,
        lambda count: [loaded.encode_length(PROMPT_TOKENS + i % 5, i) for i in range(count)],
        contest.slots,
        num_tokens=contest.num_tokens,
        repeats=contest.repeats,
        progress=terminal.progress,
    )
    return {
        "dtype": loaded.record.dtype,
        "exact": loaded.record.exact,
        "num_tokens": contest.num_tokens,
        "repeats": contest.repeats,
        "versions": {name: version(name) for name in ("torch", "transformers")},
        "busy": busy,
        "left_out": left_out,
        "rows": peer_bench.rows_to_plain(rows),
        "overhead": {name: round(value, 2) for name, value in overhead.items()},
        "limit": peer_bench.measure_limit()._asdict(),
        "resident_bytes": peer_bench.resident_bytes(),
    }


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
    if (rows := measured.get("rows")) is not None:
        _print_contest(console, measured, rows)
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


def _print_contest(console: Console, measured: Mapping[str, Any], rows: list[dict[str, Any]]) -> None:
    heading = f"{measured['dtype']}, {measured['num_tokens']} forced tokens"
    table = _table(heading, "slots", "tokens/s", "from", "to", "ms a step", "× generate", "same tokens")
    for row in rows:
        ratio, same = row["ratio_to_generate"], row["same_tokens"]
        table.add_row(
            row["engine"],
            str(row["slots"]),
            f"{row['tok_s']:.1f}",
            f"{row['slowest_tok_s']:.1f}",
            f"{row['fastest_tok_s']:.1f}",
            f"{row['ms_per_step']:.1f}",
            "" if ratio is None else f"{ratio:.2f}",
            "" if same is None else f"{100 * same:.0f} %",
        )
    console.print(table)
    limit = measured["limit"]
    console.print(
        f"this machine reads {limit['read_bytes_per_s'] / 1e9:.1f} GB/s and multiplies "
        f"{limit['multiply_flop_per_s'] / 1e9:.0f} GFLOP/s in float32; of batchviz's time "
        f"{measured['overhead']['snapshot_pct']:.1f} % was scheduling, snapshots and detokenizing",
        markup=False,
        soft_wrap=True,
    )
    for sentence in measured["left_out"]:
        console.print(sentence, markup=False, soft_wrap=True)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    return table
