"""The exported page in a real browser, opened from its file as a stranger would: it asks nobody and plays as it is told."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from typer.testing import CliRunner

from batchviz.cli import app
from batchviz.export.html import to_html
from tests.e2e.app_server import ROOT
from tests.e2e.conftest import errors_of
from tests.hostile import hostile_traces
from tests.story import story

pytestmark = pytest.mark.e2e

ARTIFACTS = ROOT / "artifacts"
WHERE = '[data-part="where"]'
Open = Callable[..., Page]


@pytest.fixture
def open_file(browser: Browser) -> Iterator[Open]:
    """Opens a file; afterwards, an error in the console or a request for anything but the file is a failure."""
    errors: list[list[str]] = []
    asked: list[str] = []
    files: list[str] = []
    contexts = []

    def open_it(path: Path, fragment: str = "", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 860}, **options)
        contexts.append(context)
        page = context.new_page()
        errors.append(errors_of(page))
        page.on("request", lambda request: asked.append(request.url.split("#")[0]))
        files.append(path.as_uri())
        page.goto(path.as_uri() + fragment)
        expect(page.locator(".batchviz .lane").first).to_be_visible()
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert not any(errors)
    assert asked == files


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `export four-slots -o page.html` writes."""
    path = tmp_path_factory.mktemp("export") / "page.html"
    done = CliRunner().invoke(app, ["export", "four-slots", "-o", str(path)])
    assert done.exit_code == 0
    return path


def written(tmp_path: Path, **options: Any) -> Path:
    path = tmp_path / "page.html"
    path.write_text(to_html(story(), **options), encoding="utf-8")
    return path


def stands(page: Page, step: int) -> None:
    expect(page.locator(WHERE)).to_have_text(f"Step {step}")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_it_plays_pauses_and_seeks(open_file: Open, exported: Path) -> None:
    page = open_file(exported)
    expect(page.locator(WHERE)).to_have_text(re.compile(r"Step [3-9]"))
    page.get_by_role("button", name="Pause").click()
    page.locator(".scrub").fill("34")
    stands(page, 34)
    expect(page.locator(".pane.static .answer.withheld")).to_have_count(3)
    page.keyboard.press("ArrowRight")
    stands(page, 35)
    page.locator(".pane.continuous .map").click(position={"x": 200, "y": 30})
    expect(page.locator(WHERE)).not_to_have_text("Step 35")
    expect(page.locator(".origin")).to_contain_text("seconds measured")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_as_its_reader_likes(open_file: Open, exported: Path, scheme: str) -> None:
    page = open_file(exported, "#step=34&play=0", color_scheme=scheme)
    stands(page, 34)
    ARTIFACTS.mkdir(exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"exported-{scheme}.png", full_page=True)
    paper, text = (brightness(page, "body", name) for name in ("backgroundColor", "color"))
    assert (paper > 240 and text < 60) if scheme == "light" else (paper < 40 and text > 200)


def brightness(page: Page, selector: str, name: str) -> float:
    colour = page.locator(selector).first.evaluate("(node, name) => getComputedStyle(node)[name]", name)
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_on_paper_it_is_light_and_has_nothing_to_press(open_file: Open, exported: Path) -> None:
    page = open_file(exported, "#step=34", color_scheme="dark")
    stands(page, 34)
    track = (
        "(canvas) => canvas.getContext('2d').getImageData(canvas.width * 0.6, canvas.height / 2, 1, 1).data[0]"  # empty
    )
    canvas = page.locator(".pane.continuous canvas")
    assert canvas.evaluate(track) < 60
    page.emulate_media(media="print")
    expect(page.locator(".controls")).to_be_hidden()
    assert brightness(page, "body", "backgroundColor") > 240
    assert canvas.evaluate(track) > 200
    page.screenshot(path=ARTIFACTS / "exported-print.png", full_page=True)
    page.emulate_media(media="null")
    expect(page.locator(".controls")).to_be_visible()
    assert len(re.findall(rb"/Type /Page\b", page.pdf(prefer_css_page_size=True))) == 1


def test_it_opens_at_the_step_of_its_file_and_plays_if_told(open_file: Open, tmp_path: Path) -> None:
    page = open_file(written(tmp_path, step=34))
    stands(page, 34)
    page.wait_for_timeout(600)
    stands(page, 34)
    page = open_file(written(tmp_path, step=34, play=True))
    expect(page.locator(WHERE)).to_have_text(re.compile(r"Step 3[6-9]"))
    page = open_file(written(tmp_path, play=False))
    page.wait_for_timeout(600)
    stands(page, 0)
    page = open_file(written(tmp_path, step=100_000))
    stands(page, 319)


def test_the_address_goes_before_the_file_and_may_change(open_file: Open, tmp_path: Path) -> None:
    page = open_file(written(tmp_path, step=34), "#step=12&speed=2&controls=0")
    expect(page.locator(".controls")).to_be_hidden()
    expect(page.locator(WHERE)).to_have_text("Step 12")
    assert page.locator('[data-part="speed"]').input_value() == "2"
    page.evaluate("location.hash = '#step=100&controls=1'")
    stands(page, 100)
    page.evaluate("location.hash = '#step=-4&play=maybe&speed=1e9&controls=<b>&x=y'")
    page.wait_for_timeout(400)
    stands(page, 100)
    page.evaluate("location.hash = '#play=1'")
    expect(page.locator(WHERE)).to_have_text(re.compile(r"Step 10[2-9]"))


def test_garbage_in_the_address_leaves_all_as_it_is(open_file: Open, tmp_path: Path) -> None:
    page = open_file(written(tmp_path, step=34), "#step=1e2&play=yes&controls=off&speed=3&" + "x" * 50)
    stands(page, 34)
    expect(page.locator(".controls")).to_be_visible()
    assert page.locator('[data-part="speed"]').input_value() == "1"


def test_whoever_wants_no_motion_gets_none(open_file: Open, tmp_path: Path) -> None:
    page = open_file(written(tmp_path, step=34, play=True), "#play=1", reduced_motion="reduce")
    page.wait_for_timeout(600)
    stands(page, 34)


def test_hostile_texts_stay_text(open_file: Open, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(to_html(hostile_traces()), encoding="utf-8")
    page = open_file(path, "#play=0")
    for step in range(14):
        page.locator(".scrub").fill(str(step))
        expect(page.locator(WHERE)).to_have_text(f"Step {step}")
    expect(page.locator("h1")).to_contain_text("<img src=x onerror=")
    expect(page.locator(".origin")).to_contain_text("<img src=x onerror=")
    expect(page.locator(".answer .words").first).to_contain_text("<img src=x")
    assert page.title().startswith("</script><img")
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hit") is None
    page.screenshot(path=ARTIFACTS / "exported-hostile.png", full_page=True)


def test_a_script_that_is_not_the_page_s_own_does_not_run(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "changed.html"
    path.write_text(
        written(tmp_path).read_text(encoding="utf-8").replace("</main>", "</main><script>window.hit=1</script>")
    )
    page = browser.new_page()
    page.goto(path.as_uri())
    expect(page.locator(".batchviz .lane").first).to_be_visible()
    assert page.evaluate("window.hit") is None
    page.close()
