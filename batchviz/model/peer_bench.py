"""This engine beside others: tokens per second for the same prompts and the same forced lengths, in one run.

Owns: the measurement and its rows. Must not know: how a peer works, printing. Engines alternate, so that a slow moment of
the machine hits them all; medians are compared, and the spread is told.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psutil

from batchviz.model.peers import Own, Peer, Prompts

BASE = "generate"  # ratios are to this one
BUSY_PCT = 15  # of all cores, while we wait
BUSY_WATCH_S = 1.0


class Row(NamedTuple):
    """One engine at one number of slots."""

    engine: str
    slots: int
    tok_s: float  # output tokens per second, prompts and all; median
    fastest_tok_s: float
    slowest_tok_s: float
    ms_per_step: float  # all of the time, divided by the tokens of one answer
    ratio_to_generate: float | None
    same_tokens: float | None  # share of its tokens equal to `generate`'s


def measure_peers(
    own: Own,
    peers: Sequence[Peer],
    prompts_for: Callable[[int], Prompts],
    slots: Sequence[int],
    *,
    num_tokens: int,
    repeats: int,
    progress: Callable[[str, float | None], None],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[Row], dict[str, float]]:
    """Rows in the order of slots and engines; and what share of this engine's time was its own work, in per cent."""
    rows: list[Row] = []
    overheads: list[float] = []
    engines: list[Peer] = [own, *peers]
    for number, count in enumerate(slots):
        prompts = prompts_for(count)
        seconds: dict[str, list[float]] = {engine.name: [] for engine in engines}
        answers: dict[str, list[list[int]]] = {}
        for repeat in range(repeats + 1):
            for engine in engines:
                progress(f"{engine.name}, {count} slots", (number + repeat / (repeats + 1)) / len(slots))
                started_s = clock()
                answers[engine.name] = engine.answer(prompts, num_tokens)
                duration_s = clock() - started_s
                if repeat > 0:  # the first is a warm-up
                    seconds[engine.name].append(duration_s)
                    if engine is own:
                        overheads.append(100 * own.outside_s / own.duration_s)
        medians = {name: statistics.median(measured) for name, measured in seconds.items()}
        for engine in engines:
            total = count * num_tokens
            rows.append(
                Row(
                    engine=engine.name,
                    slots=count,
                    tok_s=total / medians[engine.name],
                    fastest_tok_s=total / min(seconds[engine.name]),
                    slowest_tok_s=total / max(seconds[engine.name]),
                    ms_per_step=1000 * medians[engine.name] / num_tokens,
                    ratio_to_generate=medians[BASE] / medians[engine.name] if BASE in medians else None,
                    same_tokens=_alike(answers[engine.name], answers[BASE]) if BASE in answers else None,
                )
            )
    return rows, {"snapshot_pct": statistics.median(overheads)}


def busy_sentence(watch_s: float = BUSY_WATCH_S) -> str | None:
    """Watches this machine while we do nothing. Says that something else runs here, so that numbers measured now are
    not to be trusted; None if nothing does.
    """
    busy_pct = psutil.cpu_percent(interval=watch_s)
    if busy_pct <= BUSY_PCT:
        return None
    return f"this machine is busy ({busy_pct:.0f} % of its processors): the numbers are not to be trusted"


def resident_bytes() -> int:
    """The memory of this process, now."""
    return int(psutil.Process().memory_info().rss)


def rows_to_plain(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Plain data, ready for `json.dumps`."""
    return [
        {key: round(value, 3) if isinstance(value, float) else value for key, value in row._asdict().items()}
        for row in rows
    ]


def _alike(answers: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> float:
    pairs = [(a, b) for mine, theirs in zip(answers, others, strict=True) for a, b in zip(mine, theirs, strict=True)]
    return sum(a == b for a, b in pairs) / max(len(pairs), 1)
