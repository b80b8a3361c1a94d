"""The real source of a function, by file and name, without importing anything: `scheduler.py StaticScheduler.may_admit`.

Owns: `source_text`. Must not know: lessons. It reads files of this package and no others.
"""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
Definition = ast.FunctionDef | ast.ClassDef


class SourceError(ValueError):
    """There is no such thing. The message is one sentence."""


def source_text(where: str) -> str:
    """The lines of a function or class, dedented. Raises SourceError."""
    file, _, name = where.partition(" ")
    known = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    if file not in known:
        raise SourceError(f"there is no file {file!r} in the package")
    text = known[file].read_text(encoding="utf-8")
    body: list[ast.stmt] = ast.parse(text).body
    found: Definition | None = None
    for part in name.split("."):
        found = next((one for one in body if isinstance(one, Definition) and one.name == part), None)
        if found is None:
            raise SourceError(f"there is no {name!r} in {file}")
        body = found.body
    assert found is not None
    first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
    return textwrap.dedent("\n".join(text.splitlines()[first - 1 : found.end_lineno])) + "\n"
