"""Those who left are tidied up after, once for all who left together; what is loaded beforehand is all that a page needs."""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from batchviz.ui import tidy
from batchviz.ui.tidy import Tidier
from tests.test_worker import wait_for

ROOT = Path(__file__).parent.parent.parent


def test_many_who_leave_together_are_tidied_up_after_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gave_back: list[float] = []
    monkeypatch.setattr(tidy, "give_back", lambda: gave_back.append(time.monotonic()))
    tidier = Tidier(wait_s=0.1)
    asked_s = time.monotonic()
    for _ in range(30):
        tidier.ask()
    wait_for(lambda: len(gave_back) > 0)
    time.sleep(0.2)
    assert len(gave_back) == 1
    assert gave_back[0] >= asked_s + 0.1
    tidier.ask()  # and who leaves later is not forgotten
    wait_for(lambda: len(gave_back) == 2)


def test_streamlit_makes_no_whole_collection_after_every_run() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["runner"]["postScriptGC"] is False


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_what_was_used_goes_back_to_the_system() -> None:
    """Blocks too small to be mapped one by one, with one in a hundred kept: without a trim nothing of that goes back."""
    program = """
import psutil
from batchviz.ui.tidy import give_back, one_heap
one_heap()
me = psutil.Process()
before = me.memory_info().rss
blocks = [b"x" * 100_000 for _ in range(1_000)]
held = me.memory_info().rss
kept = blocks[::100]
del blocks
give_back()
print((held - before) // 1_000_000, (me.memory_info().rss - before) // 1_000_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    held_mb, kept_mb = map(int, done.stdout.split())
    assert held_mb > 90
    assert kept_mb < 20


def test_the_pages_are_loaded_before_the_first_visitor() -> None:
    program = """
import sys
from batchviz.ui.warm_up import warm_up
warm_up().join()
print(*(name in sys.modules for name in ("batchviz.ui.pages.compare", "batchviz.ui.pages.debug", "pandas", "altair", "torch")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["True", "True", "True", "True", "False"]
