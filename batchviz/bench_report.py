"""How measurements are shown: as tables in the terminal, and as the one in the README.

Owns: that. Must not know: how anything is measured. It reads the plain data that `bench --json` prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table

from batchviz.phrases import exactness

BEGIN, END = "<!-- bench: written by `make bench` -->", "<!-- bench: end -->"
MARKED = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
ENGINES = MappingProxyType(
    {
        "batchviz": "batchviz",
        "batchviz-float32": "the same, weights in float32",
        "generate": "`generate`",
        "generate_batch": "transformers' continuous batching",
        "llama_cpp": "llama.cpp, BF16",
    }
)


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
    console.print(f"{measured['dtype']}, {measured['num_tokens']} forced tokens", markup=False)
    table = _table("engine", "slots", "tokens/s", "from", "to", "ms a step", "× generate", "same tokens")
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
    steps = _table("a decode step, ms", "in all", "linear", "attention", "rest", "the limit here", "of it")
    for step in measured["steps"]:
        steps.add_row(
            f"{step['slots']} slots",
            *(f"{step[part]:.1f}" for part in ("ms", "linear_ms", "attention_ms", "rest_ms", "limit_ms")),
            f"{step['limit_pct']:.0f} %",
        )
    if measured["steps"]:
        console.print(steps)
    limit = measured["limit"]
    console.print(
        f"{exactness(measured['exact'])}; {measured['resident_bytes'] / 1e9:.2f} GB resident with the model loaded; "
        f"this machine reads {limit['read_bytes_per_s'] / 1e9:.1f} GB/s and multiplies "
        f"{limit['multiply_flop_per_s'] / 1e9:.0f} GFLOP/s in float32; of batchviz's time "
        f"{measured['overhead']['snapshot_pct']:.1f} % was scheduling, snapshots and detokenizing",
        markup=False,
        soft_wrap=True,
    )
    for sentence in (*measured["left_out"], *([measured["busy"]] if measured["busy"] else [])):
        console.print(sentence, markup=False, soft_wrap=True)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 else "right")
    return table


def to_markdown(measured: Mapping[str, Any]) -> str:
    """The contest as a table with a column an engine, and the sentences without which it means nothing."""
    rows = measured["rows"]
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    lines = ["| tokens per second | " + " | ".join(ENGINES[engine] for engine in engines) + " |"]
    lines.append("|---|" + "---|" * len(engines))
    for slots in dict.fromkeys(row["slots"] for row in rows):
        found = {row["engine"]: row for row in rows if row["slots"] == slots}
        cells = [f"{found[engine]['tok_s']:.1f}{_ratio(found[engine])}" for engine in engines]
        lines.append(f"| {slots} slot{'' if slots == 1 else 's'} | " + " | ".join(cells) + " |")
    versions = ", ".join(f"{name} {number}" for name, number in measured["versions"].items())
    steps = "; ".join(
        f"{step['slots']}: {step['ms']:.0f} ms, of which linear layers {step['linear_ms']:.0f}, "
        f"attention {step['attention_ms']:.0f}, {step['limit_pct']:.0f} % of what the machine could do"
        for step in measured["steps"]
    )
    how = (
        f"Measured {measured['date']} on {measured['machine']}, {measured['num_tokens']} forced tokens, "
        f"medians of {measured['repeats']} alternating runs; in brackets the ratio to `generate`; {versions}. "
        f"{_formats(measured)} Nothing else ran, so all let their threads spin while they wait; the "
        "page's sleep, which costs a fifth, because beside one busy process spinning ones are ten times slower."
    )
    where = (
        f"A decode step by slots, by itself (the quieter of two measurements): {steps}. Scheduling, snapshots and detokenizing: "
        f"{measured['overhead']['snapshot_pct']:.1f} % of the time. {exactness(measured['exact']).capitalize()}."
    )
    missing = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in measured["left_out"]]
    lines += ["", how, where, *missing]
    return "\n".join(lines)


def _formats(measured: Mapping[str, Any]) -> str:
    beside_llama_cpp = any(row["engine"] == "llama_cpp" for row in measured["rows"])
    if measured["dtype"] != "float16-weights":
        return f"All in {measured['dtype']}{' but for llama.cpp' if beside_llama_cpp else ''}."
    peers = "transformers' are float32" + (", llama.cpp's bfloat16" if beside_llama_cpp else "")
    return f"batchviz keeps its weights in float16 and calculates in float32; {peers}."


def check_place(path: Path) -> None:
    """Raises ValueError where a file has no place for the table; better asked before minutes are spent on measuring."""
    if not path.is_file() or len(MARKED.findall(path.read_text(encoding="utf-8"))) != 1:
        raise ValueError(f"{path} has no place for the table; it must hold {BEGIN} and {END}, once each")


def write_into(path: Path, measured: Mapping[str, Any]) -> None:
    """Puts the table between the two marks of a file. Raises ValueError where the machine was busy."""
    check_place(path)
    if measured["busy"]:
        raise ValueError(f"{path} is left as it was, since {measured['busy']}")
    table = f"{BEGIN}\n{to_markdown(measured)}\n{END}"
    path.write_text(MARKED.sub(lambda _: table, path.read_text(encoding="utf-8")), encoding="utf-8")


def _ratio(row: Mapping[str, Any]) -> str:
    ratio = row["ratio_to_generate"]
    return "" if ratio is None or row["engine"] == "generate" else f" ({ratio:.2f}×)"
