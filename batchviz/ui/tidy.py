"""What visitors used goes back to the system once they have left. Owns: when that is done, and how.

Must not know: pages, sessions' contents. Streamlit's own way, a whole collection after every run of a script, took more time
than the script itself (LOAD.md); so that is off, Python collects when it thinks fit, and a whole collection is made when
somebody has left. The allocator keeps what is freed to it: glibc's is told to keep one heap instead of one a thread, and to
give back what is free.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

import streamlit as st

WAIT_S = 2.0  # those who leave together are tidied up after together
M_ARENA_MAX = -8  # malloc.h


class Tidier:
    """Asked as often as one likes, it tidies up once, a little later."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._is_asked = False

    def ask(self) -> None:
        with self._lock:
            if self._is_asked:
                return
            self._is_asked = True
        timer = threading.Timer(self._wait_s, self._do)
        timer.daemon = True
        timer.start()

    def _do(self) -> None:
        with self._lock:
            self._is_asked = False
        give_back()


def one_heap() -> None:
    """Threads share one heap from now on."""
    _glibc("mallopt", M_ARENA_MAX, 1)


def give_back() -> None:
    """Collects what nobody holds, and gives free memory back to the system."""
    gc.collect()
    _glibc("malloc_trim", 0)


def _glibc(name: str, *arguments: int) -> None:
    """Nothing happens where the C library is another one."""
    if sys.platform == "linux":
        function = getattr(ctypes.CDLL(None), name, None)
        if function is not None:
            function(*arguments)


@st.cache_resource(show_spinner=False)
def tidier() -> Tidier:
    """The one of this server."""
    return Tidier()


@st.cache_resource(scope="session", show_spinner=False, on_release=Tidier.ask)
def tidied_after() -> Tidier:
    """Said in every run of a page: once its session is forgotten, it is tidied up."""
    return tidier()
