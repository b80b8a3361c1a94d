"""The debugging session that is held word for word."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from batchviz.debug_shell import Shell
from batchviz.debug_start import ScriptedStart
from batchviz.debugger import DebugSession
from batchviz.presets import load_scenario
from batchviz.runs import make_config
from batchviz.scheduler import Policy

COMMANDS = Path(__file__).parent / "debug-static.commands"
EXPECTED = Path(__file__).parent / "debug-static.txt"


def debug_text(commands: str) -> str:
    """What the session says to these commands, each shown before its answer."""
    out = io.StringIO()
    session = DebugSession(ScriptedStart(load_scenario("golden-lengths"), 1024), make_config(Policy.STATIC, 4))
    shell = Shell(session, Console(file=out, highlight=False, color_system=None, width=140))
    for line in commands.splitlines():
        if line and not line.startswith("#"):
            out.write(f"(batchviz) {line}\n")
            shell.onecmd(line)
    return out.getvalue()
