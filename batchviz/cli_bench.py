"""`python -m batchviz bench`: which measurements are made.

Owns: that. Must not know: how anything is measured or printed. The model's own are made only if they are asked for.
"""

from __future__ import annotations

import sys
from datetime import date
from typing import Any, NamedTuple

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
    measured: dict[str, Any] = {"schema": BENCH_SCHEMA, "date": date.today().isoformat(), "machine": describe_machine()}
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

    from batchviz.model import let_threads_spin

    let_threads_spin()
    from batchviz.model import peer_bench  # loads torch
    from batchviz.model.bench import measure_limit, measure_split
    from batchviz.model.load import load_model
    from batchviz.model.number_format import DTYPES, FLOAT16_WEIGHTS, FLOAT32
    from batchviz.model.peers import Own, make_peers
    from batchviz.model.weights import ensure_weights

    busy = peer_bench.busy_sentence()
    if busy is not None:
        print(f"batchviz: {busy}", file=sys.stderr)
    loaded = load_model(None, device=device, dtype=dtype, progress=terminal.progress)
    if loaded.record.device != "cpu":
        raise ValueError("beside other engines only processors are measured; say --device cpu")
    own_bytes = peer_bench.resident_bytes()
    limit = measure_limit()
    position = PROMPT_TOKENS + contest.num_tokens // 2
    splits = [measure_split(loaded, count, limit, position=position) for count in contest.slots]
    source = str(ensure_weights(terminal.progress))
    peers, left_out = make_peers(contest.peers, source, DTYPES[loaded.record.dtype])
    if loaded.record.dtype == FLOAT16_WEIGHTS:  # what the format alone gains, and what the rest
        longer = load_model(None, device="cpu", dtype=FLOAT32)
        peers = [Own(longer, longer.make_detokenizer, "batchviz-float32"), *peers]
    rows, overhead = peer_bench.measure_peers(
        Own(loaded, loaded.make_detokenizer),
        peers,
        lambda count: [loaded.encode_length(PROMPT_TOKENS + i % 5, i) for i in range(count)],
        contest.slots,
        num_tokens=contest.num_tokens,
        repeats=contest.repeats,
        progress=terminal.progress,
    )
    again = [measure_split(loaded, count, limit, position=position) for count in contest.slots]
    quieter = [
        min(one, other, key=lambda split: split.median_s)
        for one, other in zip(splits, again, strict=True)
        if one is not None and other is not None
    ]
    return {
        "dtype": loaded.record.dtype,
        "exact": loaded.record.exact,
        "num_tokens": contest.num_tokens,
        "repeats": contest.repeats,
        "versions": {name: version(name) for name in _libraries(peers)},
        "busy": busy,
        "left_out": left_out,
        "rows": peer_bench.rows_to_plain(rows),
        "steps": [split.to_plain() for split in quieter],
        "overhead": {name: round(value, 2) for name, value in overhead.items()},
        "limit": limit._asdict(),
        "resident_bytes": own_bytes,
    }


def _libraries(peers: list[Any]) -> tuple[str, ...]:
    with_llama_cpp = any(peer.name == "llama_cpp" for peer in peers)
    return ("torch", "transformers", "llama-cpp-python") if with_llama_cpp else ("torch", "transformers")
