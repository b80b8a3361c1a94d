"""The debugger in the terminal, in the manner of pdb: one line a command.

Owns: the commands, their short forms and their words. Must not know: how a session begins, torch, typer.
"""

from __future__ import annotations

import cmd
import difflib
import shlex
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.text import Text

from batchviz import debug_tables as tables
from batchviz.breakpoints import FORMS, Breakpoint, parse_breakpoint
from batchviz.debug_run import DebugError
from batchviz.debug_source import source_of_phase
from batchviz.debug_words import config_of, number, request_of
from batchviz.debugger import DebugSession, Phase, Stop
from batchviz.explain import why
from batchviz.scenario import shown_text
from batchviz.trace_file import write_traces

SHORT = MappingProxyType(
    {"s": "step", "i": "into", "n": "next", "p": "previous", "b": "back", "g": "goto", "u": "until", "c": "continue"}
    | {"rc": "reverse", "w": "why", "d": "decisions", "h": "help", "q": "quit", "br": "break", "exit": "quit"}
)


class Shell(cmd.Cmd):
    """`sessions` begins with one; every fork adds one. `current` is the one that commands are about."""

    prompt = "(batchviz) "

    def __init__(self, session: DebugSession, console: Console) -> None:
        super().__init__()
        self.sessions = [session]
        self.current = session
        self._console = console
        self._breakpoints: list[Breakpoint] = []
        self.has_failed = False

    def onecmd(self, line: str) -> bool:
        """One command. What cannot be done is said, and the session stays as it was."""
        word, _, rest = line.strip().partition(" ")
        self.has_failed = False
        try:
            return bool(super().onecmd(f"{SHORT.get(word, word)} {rest}"))
        except (ValueError, KeyError, OSError) as error:
            self.has_failed = True
            self._say(f"error: {error.args[0] if isinstance(error, KeyError) else error}")
            return False

    def default(self, line: str) -> None:
        word = line.split()[0]
        near = difflib.get_close_matches(word, [*self._names(), *SHORT], n=1)
        hint = f"; did you mean `{SHORT.get(near[0], near[0])}`?" if near else "; `help` lists the commands"
        raise DebugError(f"{shown_text(word)} is not a command{hint}")

    def emptyline(self) -> bool:
        """As in pdb, the last command again; nothing before the first."""
        return self.onecmd(self.lastcmd) if self.lastcmd.strip() else False

    def do_step(self, line: str) -> None:
        """step [N]: the next step, or N of them"""
        for _ in range(number(line, 1)):
            self.current.step()
        self._show()

    def do_into(self, _: str) -> None:
        """into: the next phase of the step: admissions, packed batch, forward pass, sampling, finish checks, releases"""
        phase = self.current.step_into()
        self._say(tables.heading(self.current))
        views: dict[Phase, Callable[[str], None]] = {
            Phase.ADMIT: self.do_queue,
            Phase.PACK: self.do_batch,
            Phase.FORWARD: self.do_time,
            Phase.SAMPLE: self.do_top if self.current.seen() is not None else self.do_slots,
            Phase.FINISH: self.do_decisions,
            Phase.RELEASE: self.do_slots,
        }
        views[phase]("")

    def do_next(self, _: str) -> None:
        """next: go on to the next step in which something happens to a request"""
        self.current.next_event()
        self._show()

    def do_previous(self, _: str) -> None:
        """previous: back to the last step in which something happened to a request"""
        self.current.previous_event()
        self._show()

    def do_back(self, line: str) -> None:
        """back [N]: the step before, or N before; nothing is computed"""
        for _ in range(number(line, 1)):
            self.current.back()
        self._show()

    def do_goto(self, line: str) -> None:
        """goto N: step N, made if need be"""
        self.current.goto(number(line))
        self._show()

    def do_until(self, line: str) -> None:
        """until CONDITION: go on until it holds (`help break` says what a condition is)"""
        self._stopped(self.current.run_until([parse_breakpoint(line)]))

    def do_continue(self, _: str) -> None:
        """continue: go on to the next breakpoint, or to the end"""
        self._stopped(self.current.run_until(self._breakpoints))

    def do_reverse(self, line: str) -> None:
        """reverse [CONDITION]: back to the last breakpoint, or to where a condition held"""
        wanted = [parse_breakpoint(line)] if line.strip() else self._breakpoints
        self._stopped(self.current.run_until(wanted, backwards=True))

    def do_break(self, line: str) -> None:
        """break [CONDITION]: stop there from now on; without one, list them"""
        if line.strip():
            self._breakpoints.append(parse_breakpoint(line))
        for place, one in enumerate(self._breakpoints, start=1):
            self._say(f"{place}  {one.text}")
        if not self._breakpoints:
            self._say("no breakpoints; `break finished *` makes one")

    def help_break(self) -> None:
        self._say("break CONDITION: stop in the step in which it happens or begins. Conditions:")
        for form in FORMS:
            self._say(f"  {form}")

    def do_delete(self, line: str) -> None:
        """delete N: take breakpoint N back; `delete all` takes all"""
        if line.strip() == "all":
            self._breakpoints.clear()
            return
        chosen = number(line)
        if not 1 <= chosen <= len(self._breakpoints):
            raise DebugError(f"there is no breakpoint {chosen}; there are {len(self._breakpoints)}")
        del self._breakpoints[chosen - 1]

    def do_slots(self, _: str) -> None:
        """slots: who sits where and what it did"""
        self._print(tables.slots_table(self.current))

    def do_queue(self, _: str) -> None:
        """queue: who waits, since when, and why"""
        self._print(tables.queue_table(self.current) if self.current.facts().num_waiting else "nobody waits")

    def do_batch(self, _: str) -> None:
        """batch: the packed batch, a row a token"""
        self._print(tables.batch_table(self.current))

    def do_kv(self, _: str) -> None:
        """kv: the cache: used, reserved, unused"""
        self._print(tables.kv_table(self.current))

    def do_top(self, _: str) -> None:
        """top: the likeliest next tokens of every slot that sampled one"""
        self._print(tables.top_table(self.current) or "no model runs here; `--runner model` shows the likeliest tokens")

    def do_time(self, _: str) -> None:
        """time: where the step's time went"""
        self.current.facts()
        self._say(tables.time_line(self.current))

    def do_decisions(self, _: str) -> None:
        """decisions: everything this step decided, each with its reason"""
        for line in tables.decision_lines(self.current):
            self._say(f"- {line}")

    def do_source(self, _: str) -> None:
        """source: the functions of the phase on show, as they run"""
        for line in source_of_phase(self.current.phase).splitlines():
            self._say(line)

    def do_why(self, line: str) -> None:
        """why REQUEST: where it stands in this step, and why"""
        if not line.strip():
            raise DebugError("why needs a request: `why r3`")
        self._say(why(self.current.trace, self.current.facts(), line.strip()))

    def do_inject(self, line: str) -> None:
        """inject ID [prompt=N | "words"] [output=N | max=N]: a request more, that arrives with the next step"""
        request = self.current.inject(request_of(line, self.current.now))
        self._say(f"{request.id} arrives with the next step: {request.num_prompt_tokens} prompt tokens")

    def do_abort(self, line: str) -> None:
        """abort REQUEST: its user leaves before the next step"""
        self.current.abort(line.strip())
        self._say(f"{line.strip()} leaves before the next step")

    def do_fork(self, line: str) -> None:
        """fork [POLICY] [slots=N] [prefill=MODE] [tokens=N] [kv=N]: the same past, then otherwise; `runs` lists both"""
        config = self.current.trace.config if self.current.is_at_end else self.current.trace.config_at(self._step())
        wanted = config_of(line, config)
        forked = self.current.fork(wanted)
        self.sessions.append(forked)
        self.current = forked
        self._say(f"run {len(self.sessions)}: the same {forked.num_steps} steps (checked), then {wanted.policy}")

    def do_runs(self, _: str) -> None:
        """runs: this run and its forks"""
        for place, session in enumerate(self.sessions, start=1):
            mark = "→" if session is self.current else " "
            config = session.trace.config
            steps = f"{config.policy}, {config.num_slots} slots, {session.num_steps} steps"
            self._say(f"{mark} {place}  {steps}{'' if session.has_more else ', over'}")

    def do_use(self, line: str) -> None:
        """use N: commands are about run N from now on"""
        chosen = number(line)
        if not 1 <= chosen <= len(self.sessions):
            raise DebugError(f"there is no run {chosen}; there are {len(self.sessions)}")
        self.current = self.sessions[chosen - 1]

    def do_save(self, line: str) -> None:
        """save FILE: this run as a trace, as far as it came; `save FILE all` keeps its forks beside it"""
        names = shlex.split(line)
        if not 1 <= len(names) <= 2 or (len(names) == 2 and names[1] != "all"):
            raise DebugError("save needs a file: `save run.trace.json`, or `save runs.trace.json all`")
        sessions = self.sessions if len(names) == 2 else [self.current]
        write_traces(Path(names[0]), tuple(session.trace for session in sessions))
        self._say(names[0])

    def do_help(self, line: str) -> None:
        """help [COMMAND]: what there is"""
        word = SHORT.get(line.strip(), line.strip())
        if word == "break":
            self.help_break()
        elif word:
            self._say(self._help_of(word))
        else:
            for name in self._names():
                self._say(self._help_of(name))

    def do_quit(self, _: str) -> bool:
        """quit: leave; nothing is saved by itself"""
        return True

    def do_EOF(self, _: str) -> bool:
        self._say("")
        return True

    def _names(self) -> list[str]:
        names = [name.removeprefix("do_") for name in self.get_names() if name.startswith("do_")]
        return [name for name in names if name != "EOF"]

    def _help_of(self, word: str) -> str:
        function: Any = getattr(self, f"do_{word}", None)
        if function is None:
            self.default(word)
        short = [short for short, long in SHORT.items() if long == word and short != "exit"]
        return f"{function.__doc__}{f'   ({short[0]})' if short else ''}"

    def _show(self) -> None:
        self._say(tables.heading(self.current))
        self.do_slots("")
        if self._breakpoints:
            for _, sentence in self.current.hits(self._breakpoints):
                self._say(f"breakpoint: {sentence}")

    def _stopped(self, stop: Stop) -> None:
        self._say(stop.message)
        if stop.step is not None:
            self._say(tables.heading(self.current))
            self.do_slots("")

    def _step(self) -> int:
        return self.current.facts().snapshot.step

    def _say(self, line: str) -> None:
        self._print(Text("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)))

    def _print(self, what: Any) -> None:
        self._console.print(what, markup=False, highlight=False, soft_wrap=isinstance(what, Text))
