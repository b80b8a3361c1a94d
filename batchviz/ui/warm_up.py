"""What the first visitor would wait for, loaded while his browser still reads Streamlit's script: it needs a second for that.

Owns: what is loaded. Must not know: what it is for. A server that is asked before it is through loses nothing by it.
"""

from __future__ import annotations

import threading


def warm_up() -> threading.Thread:
    """Begins, and returns at once."""
    thread = threading.Thread(target=_load, name="warm-up", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    """The pages, with pandas, altair and pyarrow behind them. Lessons wait for their first reader: they take a second more."""
    from batchviz.ui.pages import compare, debug, learn, what_is_real  # noqa: F401
