"""A child process that is spoken to in JSON, one message a line; questions wait for their answers.

Owns: ChildProcess: its life, its pipes, who waits for which answer. Must not know: jobs, models, what a message says beyond
its `kind` and `ask`. Whoever starts it gives the lock under which messages are taken.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from threading import RLock
from typing import IO, Any

Message = dict[str, Any]


class ChildEndedError(RuntimeError):
    """The child ended before it answered. The message is one sentence."""


class ChildProcess:
    """Starts the child when it is needed and again when it has died.

    `take` hears every message that answers no question, `ended` the exit code of a child that died by itself; both are
    called under `lock`. `heard` is called, under it too, with every message, answers among them.
    """

    def __init__(
        self,
        command: Sequence[str],
        lock: RLock,
        take: Callable[[Message], None],
        ended: Callable[[int], None],
        heard: Callable[[Message], None],
    ) -> None:
        self._command = tuple(command)
        self._lock = lock
        self._take = take
        self._ended = ended
        self._heard = heard
        self._outbox: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._numbers = count(1)
        self._waiting: dict[int, Future[Message]] = {}

    @property
    def pid(self) -> int | None:
        """Its process id, None while there is none."""
        return None if self._process is None else self._process.pid

    @property
    def is_asked(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._waiting)

    def start(self) -> None:
        """Makes sure that there is one."""
        with self._lock:
            if self._process is not None:
                return
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                bufsize=1,
                env=_environment(),
            )
            self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
            self._listener.start()
            self._outbox = queue.SimpleQueue()
            threading.Thread(target=_write, args=(self._process.stdin, self._outbox), daemon=True).start()

    def send(self, message: Message) -> None:
        """Says something, and never waits until it is heard. To a dead child nothing is said: `ended` will tell."""
        if self._process is not None:
            self._outbox.put(json.dumps(message) + "\n")

    def ask(self, question: Message) -> Future[Message]:
        """Says something that is answered by one message of the same number; starts the child if need be.

        The future raises ChildEndedError if the child ends first.
        """
        with self._lock:
            self.start()
            number = next(self._numbers)
            answer: Future[Message] = Future()
            self._waiting[number] = answer
            self.send({**question, "ask": number})
            return answer

    def close(self) -> None:
        """Ends it, and everybody's waiting."""
        self.kill("the server is closing")
        if self._listener is not None:
            self._listener.join()

    def kill(self, why: str) -> None:
        """Ends it at once, whatever it is at; whoever waits for an answer is told why. `ended` is not called."""
        with self._lock:
            process, self._process = self._process, None
            self._outbox.put(None)
            self._give_up(why)
        if process is not None:
            process.kill()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        for message in _messages(process.stdout):
            with self._lock:
                if process is not self._process:
                    continue
                self._heard(message)
                answer = self._waiting.pop(message.get("ask", 0), None)
                if answer is not None:
                    answer.set_result(message)
                else:
                    self._take(message)
        code = process.wait()
        _close_pipes(process)
        with self._lock:
            if process is self._process:
                self._process = None
                self._outbox.put(None)
                self._give_up(f"the model's process ended unexpectedly (exit code {code})")
                self._ended(code)

    def _give_up(self, why: str) -> None:
        for answer in self._waiting.values():
            answer.set_exception(ChildEndedError(why))
        self._waiting.clear()


def _write(pipe: IO[str] | None, outbox: queue.SimpleQueue[str | None]) -> None:
    """Passes lines on until there are no more; a child that stands still holds up this thread alone."""
    with contextlib.suppress(OSError, ValueError):  # it has died, and somebody else will say so
        while pipe is not None and (line := outbox.get()) is not None:
            pipe.write(line)
            pipe.flush()


def _environment() -> dict[str, str]:
    """The child finds this package wherever the page was started from."""
    root = str(Path(__file__).resolve().parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def _close_pipes(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was still to be written to a dead child
                pipe.close()


def _messages(stream: IO[str] | None) -> Iterator[Message]:
    """The child's messages; whatever else lands on its stdout (a library's print) is passed over."""
    for line in stream or ():
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and "kind" in message:
            yield message
