"""What the page says of the queue, of limits, and where there is no model."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from batchviz.jobs import JobState, JobView
from batchviz.limits import Limits
from batchviz.ui import state
from batchviz.ui.live_panel import _words, wait_words
from batchviz.ui.prompts import queue_words

ROOT = Path(__file__).parent.parent.parent
QUEUED = JobView(1, JobState.QUEUED, "", None, 2, (), 0, False, False, 0, 0, "")


def captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "not known yet"),
        (0.0, "a few seconds"),
        (4.9, "a few seconds"),
        (5.0, "about 10 s"),
        (41.0, "about 40 s"),
        (94.0, "about 90 s"),
        (95.0, "about 2 min"),
        (620.0, "about 10 min"),
    ],
)
def test_a_wait_is_said_no_more_exactly_than_it_is_known(seconds: float | None, words: str) -> None:
    assert wait_words(seconds) == words


def test_the_place_and_the_wait_are_on_the_screen() -> None:
    assert _words(QUEUED) == "In the queue: 2 runs are before yours; expected wait: not known yet"
    second = replace(QUEUED, place=1, wait_s=38.0, num_viewers=3)
    assert _words(second) == (
        "In the queue: one run is before yours; expected wait: about 40 s (shared with 2 others who asked for the same)"
    )
    running = replace(second, state=JobState.RUNNING, place=0, num_steps=(7, 0), num_viewers=2)
    assert _words(running).endswith("run 1 of 2, step 7 (shared with 1 other who asked for the same)")


def test_limits_are_said_before_they_are_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert queue_words(Limits()) == "Each viewer has one live run at a time; at most 32 wait, and viewers take turns."
    assert queue_words(Limits(max_runs_per_viewer=3)).startswith("Each viewer has 3 live runs at a time")
    monkeypatch.setattr(state, "limits", lambda: Limits(max_tokens=77, max_requests=9, max_prompt_characters=1_234))
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    page.session_state["box_prompts"] = True
    page.run()
    assert "At most 9 requests, 1,234 characters each, and 77 tokens of answer" in captions(page)


WITHOUT_TORCH = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "accelerate", "gguf", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

import importlib.util
whole = importlib.util.find_spec
hidden = ("torch", "transformers", "accelerate", "gguf", "safetensors")
importlib.util.find_spec = lambda name, package=None: None if name in hidden else whole(name, package)
sys.meta_path.insert(0, Hidden())

from streamlit.testing.v1 import AppTest
page = AppTest.from_file("app.py", default_timeout=60).run()
assert not page.exception, page.exception
assert page.button(key="run_live").disabled
print([caption.value for caption in page.caption if "torch" in caption.value])
print(len(page.get("bidi_component")), "torch" in sys.modules)
"""


def test_without_torch_the_page_works_and_says_so_beside_the_button() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Recorded runs only: this server has no model (torch is not installed)." in done.stdout
    assert done.stdout.endswith("1 False\n")


def test_with_torch_the_button_can_be_pressed() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    assert not page.button(key="run_live").disabled
