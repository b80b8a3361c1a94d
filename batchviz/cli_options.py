"""The options that the terminal's commands share, each with its help.

Owns: their names, limits and words. Must not know: commands, how anything is computed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchviz.cli_runs import RunnerChoice
from batchviz.prefill import PrefillMode
from batchviz.scenario import MAX_GROUP_TIMEOUT, MAX_SLOTS, MAX_TOKENS_TOGETHER

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="A preset's name, a scenario (YAML, JSON), or a recorded workload (CSV, JSONL)."
    ),
]
RunnerOption = Annotated[
    RunnerChoice | None,
    typer.Option(
        help="scripted: lengths only, no model. recorded: the tokens of the shipped recording. model: the real model, "
        "now. Default: scripted where every length is given and no words are, recorded where there is a recording, "
        "else model."
    ),
]
SlotsOption = Annotated[int | None, typer.Option(min=1, max=MAX_SLOTS, help="Slots. Default: the scenario's.")]
CapacityOption = Annotated[int, typer.Option(min=2, max=1_000_000, help="KV positions of one slot.")]
PrefillOption = Annotated[
    PrefillMode | None,
    typer.Option(
        help="How prompts share a step: mixed with decoding tokens, exclusive (decoding stalls), or chunked into what "
        "--max-batched-tokens leaves. Default: the scenario's, else mixed."
    ),
]
BatchedTokensOption = Annotated[
    int | None,
    typer.Option(min=1, max=MAX_TOKENS_TOGETHER, help="chunked: tokens fed in one step, at most; one a slot or more."),
]
KvBudgetOption = Annotated[
    int | None,
    typer.Option(
        min=1, max=MAX_TOKENS_TOGETHER, help="KV positions that all slots may reserve together. Default: no limit."
    ),
]
GroupTimeoutOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=MAX_GROUP_TIMEOUT,
        help="static: how long a group that is not full waits for more, in the unit of the arrivals.",
    ),
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="CSV, JSONL: take the first so many rows.")]
TotalTokensOption = Annotated[
    int | None, typer.Option(min=2, help="CSV, JSONL: leave out requests longer than this, prompt and answer together.")
]
RateOption = Annotated[
    float | None, typer.Option(help="CSV, JSONL: stretch the arrivals to so many requests per second on average.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of all sampling; each request draws by its own.")]
TemperatureOption = Annotated[float, typer.Option(min=0.0, max=10.0, help="0 is greedy.")]
TopPOption = Annotated[float, typer.Option(min=0.01, max=1.0, help="Sample from the likeliest tokens of this mass.")]
DeviceOption = Annotated[str | None, typer.Option(help="cuda, mps or cpu. Default: the best there is.")]
DtypeOption = Annotated[
    str | None,
    typer.Option(
        help="float32, bfloat16, or float16-weights with float32 arithmetic. Default: what the device does well."
    ),
]
ModelOption = Annotated[str | None, typer.Option(help="A local folder or a hub id. Default: SmolLM2-135M-Instruct.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="Write the trace here (.json or .json.gz).")]
