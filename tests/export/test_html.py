"""The exported page as a file: small, whole, asking nobody, and with strangers' texts only where they are data."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest

from batchviz.export.html import to_html
from batchviz.presets import PRESET_NAMES, SCRIPTED_PRESET_NAMES
from batchviz.recordings import load_recording
from tests.hostile import HOSTILE, hostile_traces
from tests.story import story

DATA = re.compile(r'<script type="application/json" id="batchviz-(\w+)">(.*?)</script>', re.DOTALL)


@pytest.mark.parametrize("name", PRESET_NAMES + SCRIPTED_PRESET_NAMES)
def test_the_page_of_every_preset_is_small_and_names_no_other_place(name: str) -> None:
    page = to_html(load_recording(name))
    assert len(page.encode()) < 500_000
    assert not re.search(r"https?://|@import|\burl\(|\bsrc=|\bhref=|\bfetch\(", DATA.sub("", page))


def test_how_it_opens_is_data() -> None:
    def options(page: str) -> object:
        return json.loads(dict(DATA.findall(page))["options"])

    assert options(to_html(story())) == {"step": None, "play": None}
    assert options(to_html(story(), step=12, play=True)) == {"step": 12, "play": True}
    scripts = [re.findall(r'<script type="module">.*', to_html(story(), step=step), re.DOTALL) for step in (None, 12)]
    assert scripts[0] == scripts[1]


def test_the_browser_may_run_the_page_s_own_script_and_no_other() -> None:
    page = to_html(hostile_traces())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = [part.strip() for part in policy.split(";")]
    assert "default-src 'none'" in parts
    assert f"script-src 'sha256-{digest}'" in parts


def test_hostile_texts_are_data_or_escaped() -> None:
    page = to_html(hostile_traces())
    data = dict(DATA.findall(page))
    assert "<" not in data["payload"]
    assert json.loads(data["payload"])["title"] == HOSTILE
    rest = DATA.sub("", page)
    assert "<img" not in rest
    assert "&lt;img" in rest
    assert len(re.findall("<script", page)) == 3
    assert page.count("</script>") == 3


def test_the_page_says_where_its_numbers_come_from() -> None:
    page = to_html(load_recording("four-slots"))
    assert re.search(r'<p class="origin">tokens recorded from the model, 2026-[^<]*seconds measured</p>', page)
