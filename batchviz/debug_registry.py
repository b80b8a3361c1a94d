"""Debugging sessions that belong to visitors of a page, by a key that only their visitor has; one each.

Owns: Registry, Desk: how many there are, on the real model and in all, when one is closed. Must not know: pages, streamlit,
torch.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from batchviz.breakpoints import Breakpoint
from batchviz.debug_run import DebugError
from batchviz.debugger import DebugSession

IDLE_S = 600.0
MAX_DESKS = 40
MAX_MODEL_DESKS = 2  # each has a KV cache of its own, and all share one model
SEATS_TAKEN = (
    f"{MAX_MODEL_DESKS} people step through the live model already, and there are no more seats; here are the recorded tokens. "
    "A seat is free again when somebody leaves it, or after ten minutes without a step"
)


class NoSeatError(RuntimeError):
    """All seats at the model are taken. The message is one sentence."""


@dataclass
class Desk:
    """What one visitor works at: a session and its forks, the one on show, breakpoints, what was said last."""

    sessions: list[DebugSession]
    on_model: bool = False
    shown: int = 0
    breakpoints: list[Breakpoint] = field(default_factory=list)
    message: str = ""
    is_problem: bool = False
    used_s: float = 0.0
    name: str = field(default_factory=lambda: secrets.token_hex(4))  # no other desk has it

    @property
    def current(self) -> DebugSession:
        return self.sessions[self.shown]

    def fork_to(self, forked: DebugSession) -> None:
        """Puts a fork beside the first run, in the place of the fork before, and on show."""
        for gone in self.sessions[1:]:
            _end(gone)
        self.sessions[1:] = [forked]
        self.shown = 1

    def end(self) -> None:
        """Lets go of the engines."""
        for session in self.sessions:
            _end(session)

    def do(self, deed: Callable[[], str | None]) -> None:
        """Something a visitor asked for; what it says, or why it could not be done, is the message."""
        try:
            self.message, self.is_problem = deed() or "", False
        except (ValueError, KeyError) as error:
            self.message = str(error.args[0] if isinstance(error, KeyError) else error)
            self.is_problem = True


def _end(session: DebugSession) -> None:
    with contextlib.suppress(DebugError):  # an engine whose process has died is gone already
        session.end()


class Registry:
    """Opens, finds and closes desks; one that nobody used for ten minutes is closed. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()

    def has_seat(self, key: str) -> bool:
        """Whether the visitor of this key can have a desk on the model now; the one that he has is his to replace."""
        with self._lock:
            gone = self._take_idle()
            is_free = self._is_free(key)
        _end_all(gone)
        return is_free

    def open(self, key: str, session: DebugSession, *, on_model: bool = False) -> Desk:
        """A new desk for the visitor of this key, in the place of the one that he has.

        Where there are too many, the one unused for longest is closed. Raises NoSeatError where all seats at the model
        are taken.
        """
        desk = Desk([session], on_model, used_s=self._clock())
        with self._lock:
            gone = self._take_idle()
            has_seat = not on_model or self._is_free(key)
            if has_seat:
                gone += [self._desks.pop(key)] if key in self._desks else []
                if len(self._desks) >= MAX_DESKS:
                    gone.append(self._desks.pop(min(self._desks, key=lambda key: self._desks[key].used_s)))
                self._desks[key] = desk
        _end_all(gone if has_seat else [*gone, desk])
        if not has_seat:
            raise NoSeatError(SEATS_TAKEN)
        return desk

    def find(self, key: str) -> Desk | None:
        """The desk, which counts as used now; None if it is closed."""
        with self._lock:
            gone = self._take_idle()
            desk = self._desks.get(key)
            if desk is not None:
                desk.used_s = self._clock()
        _end_all(gone)
        return desk

    def close(self, key: str) -> None:
        with self._lock:
            desk = self._desks.pop(key, None)
        _end_all([desk] if desk else [])

    def _is_free(self, key: str) -> bool:
        return sum(desk.on_model for other, desk in self._desks.items() if other != key) < MAX_MODEL_DESKS

    def _take_idle(self) -> list[Desk]:
        """Those that nobody used; they are ended outside the lock, since an engine may be far away."""
        now = self._clock()
        return [
            self._desks.pop(key) for key in [key for key, desk in self._desks.items() if now - desk.used_s > IDLE_S]
        ]


def _end_all(desks: list[Desk]) -> None:
    for desk in desks:
        desk.end()
