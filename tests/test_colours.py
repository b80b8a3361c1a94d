"""The colours of Python's pictures are those of the player and of its exported page."""

from __future__ import annotations

import re

from batchviz import colours
from batchviz.player_assets import FOLDER

CSS = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("colours.css", "page.css"))


def test_requests_have_the_player_s_colours_and_letters_its_ink() -> None:
    assert tuple(re.findall(r"--bv-r\d: (#[0-9a-f]{6})", CSS)) == colours.REQUEST_COLOURS
    assert tuple(re.findall(r"--bv-i\d: (#[0-9a-f]{6})", CSS)) == colours.REQUEST_INKS


def test_a_picture_has_the_colours_of_an_exported_page_in_the_light() -> None:
    def light(name: str) -> str:
        (found,) = re.findall(rf"--page-{name}: light-dark\((#[0-9a-f]{{6}})", CSS)
        return str(found)

    assert (light("text"), light("paper"), light("second")) == (colours.TEXT, colours.PAPER, colours.SECOND)
    for name, colour in (("good", colours.GOOD), ("warn", colours.WARN)):
        assert f"--bv-{name}: {colour};" in CSS
    assert f"--bv-accent: var(--st-primary-color, {colours.ACCENT})" in CSS
