"""`python -m batchviz site`: the lessons and presets as a folder of pages.

Owns: the command. Must not know: pages' contents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchviz.cli_runs import Terminal


def site(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder; it is made if need be.")] = Path("site"),
) -> None:
    """Write all lessons and presets as pages that any file host serves; the folder is the last line on stdout."""
    from batchviz.static_site import write_site

    with Terminal():
        if output.exists() and not output.is_dir():
            raise ValueError(f"{output} is a file; give the name of a folder")
        written = write_site(output)
        size = sum(path.stat().st_size for path in written)
        print(f"{len(written)} pages, {size / 1_000_000:.1f} MB; open {written[0]}")
    print(output)
