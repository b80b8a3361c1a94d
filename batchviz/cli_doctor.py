"""`python -m batchviz doctor`: is this laptop ready for the workshop, and what must be mended?

Owns: the command, its table and its JSON. Must not know: what is good or bad, how a fact is found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from batchviz import __version__
from batchviz.cli_runs import Terminal
from batchviz.doctor import DOCTOR_SCHEMA, Check, Mark, examine, must_mend
from batchviz.doctor_facts import look
from batchviz.machine import describe_machine


def doctor(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port that the page will have.")] = 8501,
    model: Annotated[bool, typer.Option(help="Load the model and time its steps.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print batchviz-doctor/1 instead of a table.")] = False,
) -> None:
    """Check this machine before a workshop; exit code 1 if something must be mended."""
    with Terminal() as terminal:
        checks = examine(look(port, with_model=model, progress=terminal.progress))
    if as_json:
        print(json.dumps(to_plain(checks), ensure_ascii=False, indent=2))
    else:
        print_checks(checks, Console(highlight=False))
    raise typer.Exit(1 if must_mend(checks) else 0)


def to_plain(checks: Sequence[Check]) -> dict[str, Any]:
    """Ready for `json.dumps`."""
    return {
        "schema": DOCTOR_SCHEMA,
        "batchviz": __version__,
        "machine": describe_machine(),
        "ready": not must_mend(checks),
        "checks": [check._asdict() for check in checks],
    }


def print_checks(checks: Sequence[Check], console: Console) -> None:
    """A line a check; the mark is a word."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "check", "found", "what to do"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("", "check"))
    for check in checks:
        mark = check.mark.upper() if check.mark is Mark.MEND else check.mark
        table.add_row(*(Text(text) for text in (mark, check.name, check.found, check.advice)))
    console.print(table)
    mends = [check.name for check in checks if check.mark is Mark.MEND]
    verdict = f"to mend: {', '.join(mends)}" if mends else "ready: nothing must be mended"
    console.print(Text(f"\n{verdict}"), soft_wrap=True)
