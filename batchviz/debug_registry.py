"""Debugging sessions that belong to visitors of a page, by a key that only their visitor has.

Owns: Registry, Desk: how many there are, when one is closed. Must not know: pages, streamlit, torch. These sessions are plain
Python over recorded tokens or lengths; the real model is debugged in the terminal.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from batchviz.breakpoints import Breakpoint
from batchviz.debugger import DebugSession

IDLE_S = 600.0
MAX_DESKS = 40


@dataclass
class Desk:
    """What one visitor works at: a session and its forks, the one on show, breakpoints, what was said last."""

    sessions: list[DebugSession]
    shown: int = 0
    breakpoints: list[Breakpoint] = field(default_factory=list)
    message: str = ""
    is_problem: bool = False
    used_s: float = 0.0

    @property
    def current(self) -> DebugSession:
        return self.sessions[self.shown]

    def do(self, deed: Callable[[], str | None]) -> None:
        """Something a visitor asked for; what it says, or why it could not be done, is the message."""
        try:
            self.message, self.is_problem = deed() or "", False
        except (ValueError, KeyError) as error:
            self.message = str(error.args[0] if isinstance(error, KeyError) else error)
            self.is_problem = True


class Registry:
    """Opens, finds and closes desks; one that nobody used for ten minutes is closed. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def open(self, session: DebugSession) -> str:
        """A new desk; returns its key. Where there are too many, the one unused for longest is closed."""
        with self._lock:
            self._close_idle()
            if len(self._desks) >= MAX_DESKS:
                del self._desks[min(self._desks, key=lambda key: self._desks[key].used_s)]
            key = secrets.token_urlsafe(12)
            self._desks[key] = Desk([session], used_s=self._clock())
            return key

    def find(self, key: str) -> Desk | None:
        """The desk, which counts as used now; None if it is closed."""
        with self._lock:
            self._close_idle()
            desk = self._desks.get(key)
            if desk is not None:
                desk.used_s = self._clock()
            return desk

    def close(self, key: str) -> None:
        with self._lock:
            self._desks.pop(key, None)

    def _close_idle(self) -> None:
        now = self._clock()
        for key in [key for key, desk in self._desks.items() if now - desk.used_s > IDLE_S]:
            del self._desks[key]
