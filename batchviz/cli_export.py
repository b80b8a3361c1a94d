"""The terminal's command `export`: traces as files that travel.

Owns: its options, and what is refused before anything is made. Must not know: how a file is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from batchviz.check import check_trace
from batchviz.cli_runs import Terminal
from batchviz.presets import PRESET_NAMES, SCRIPTED_PRESET_NAMES, load_scenario
from batchviz.recordings import has_recording, load_recording
from batchviz.scenario import shown_text
from batchviz.trace import Trace
from batchviz.trace_file import TraceError, read_traces


class ExportError(ValueError):
    """What cannot be exported so. The message is one sentence."""


def export(
    traces: Annotated[list[str], typer.Argument(metavar="TRACE...", help="Trace or bundle files, or a preset's name.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="By its end: .html, .png, .gif, .perfetto.json, .md, .requests.csv, .steps.csv."
        ),
    ],
    step: Annotated[int | None, typer.Option(min=0, help=".html: opens there. .png: shows it; default: the last.")] = (
        None
    ),
    play: Annotated[
        bool | None,
        typer.Option(
            "--play/--no-play", help=".html: plays at once or stands. Default: plays, unless --step is given."
        ),
    ] = None,
) -> None:
    """Write traces as a page, a picture, an animation, a timeline or a table; the path is the last line on stdout."""
    from batchviz.export.formats import format_of  # loads what draws

    with Terminal():
        if not output.parent.is_dir():
            raise ExportError(f"the folder {shown_text(str(output.parent), 200)} does not exist")
        try:
            chosen = format_of(output.name)
        except ValueError as error:
            raise ExportError(f"--output {shown_text(output.name)}: {error}") from None
        for option, is_given, fits in (
            ("--step", step is not None, chosen.takes_step),
            ("--play", play is not None, chosen.takes_play),
        ):
            if is_given and not fits:
                raise ExportError(f"{option} says nothing for {chosen.suffix}")
        runs = _runs_of(traces)
        longest = max(len(run.steps) for run in runs)
        if step is not None and step >= longest > 0:
            raise ExportError(f"--step {step} is beyond the run: its steps are 0 to {longest - 1}")
        try:
            content = chosen.bytes_of(runs, step, play)
        except (LookupError, TypeError, ArithmeticError):
            problem = next((problem for run in runs for problem in check_trace(run)), None)
            if problem is None:
                raise
            raise TraceError(f"the trace contradicts itself and cannot be drawn: {problem}") from None
        output.write_bytes(content)
    print(output)


def _runs_of(names: Sequence[str]) -> tuple[Trace, ...]:
    runs = tuple(run for name in names for run in _traces_of(name))
    if any(run.scenario.requests != runs[0].scenario.requests for run in runs):
        raise ExportError("these runs are of different scenarios; a file holds runs of the same requests")
    return runs


def _traces_of(name: str) -> tuple[Trace, ...]:
    """A preset's own panes as recorded; else what the file holds."""
    if name in (*PRESET_NAMES, *SCRIPTED_PRESET_NAMES):
        if not has_recording(name):
            raise ExportError(f"there is no recording of {name}; run it and export its trace")
        return load_recording(name)
    if "." not in name and "/" not in name and not Path(name).exists():
        load_scenario(name)  # which says what there is instead
    return read_traces(Path(name))
