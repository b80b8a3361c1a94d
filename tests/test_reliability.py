"""RELIABILITY.md names tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_promise_names_tests_and_each_of_them_exists() -> None:
    rows = [
        line for line in (ROOT / "RELIABILITY.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    promises = rows[1:]  # under the heading
    assert len(promises) > 15
    for promise in promises:
        named = re.findall(r"`(tests/[^`]*)`", promise)
        assert named, promise
        for name in named:
            file, _, function = name.partition("::")
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name
