"""Keeps a library's progress bars and notices out of the terminal while it works.

Owns: that one context manager. Must not know: models, weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet_transformers(logging: Any) -> Iterator[None]:
    """Silences transformers (its `utils.logging` module is passed in) and puts everything back afterwards."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
