"""The lessons in a real browser: from the first paint to the last stop, by key, wrong and right answers, links, presenting."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from batchviz.lesson import list_lessons
from batchviz.markdown_blocks import plain
from tests.e2e.app_server import ARTIFACTS, Server
from tests.e2e.conftest import errors_of

pytestmark = pytest.mark.e2e

FIRST = list_lessons()[0]
CURRENT = '.dots [aria-current="step"]'


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, color_scheme=request.param)
    page = context.new_page()
    errors = errors_of(page)
    yield page
    page.screenshot(path=ARTIFACTS / f"{request.node.name}.png")
    context.close()
    assert errors == []


def card_says(page: Page, markdown: str) -> None:
    words = re.sub(r"\s+", " ", plain(markdown))[:60]
    expect(page.locator(".bv-lesson .card")).to_contain_text(words)


def step_is(page: Page, step: int) -> None:
    expect(page.locator('[data-part="where"]')).to_have_text(re.compile(rf"Step {step:,}\b"))


def test_from_the_first_paint_to_the_last_stop_of_the_first_lesson(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_role("button", name="Run it live")).to_be_visible(timeout=30_000)
    page.get_by_role("link", name="Learn").click()
    tiles = page.locator(".bv-lesson .lessons li")
    expect(tiles).to_have_count(9, timeout=30_000)
    tiles.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name=FIRST.title)).to_be_visible()
    for place, stop in enumerate(FIRST.stops):
        page.keyboard.press("n")
        if any(question.before == place for question in FIRST.questions):
            expect(page.locator(".bv-lesson .choice")).to_have_count(3)
            expect(page.locator(".batchviz .telling")).to_be_hidden()  # it would tell the answer
            page.keyboard.press("PageDown")
        card_says(page, stop.say)
        step_is(page, stop.step)
        expect(page.locator(".batchviz .is-focus").first).to_be_visible()
        expect(page.locator(".batchviz .pane")).to_have_count(2)
    page.keyboard.press("p")
    expect(page.locator(".bv-lesson .choice")).to_have_count(3)


def test_wrong_and_right_answers_are_told_and_kept(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/learn?lesson={FIRST.id}&stop=3")
    question = FIRST.questions[0]
    right = next(place for place, choice in enumerate(question.choices) if choice.is_right)
    wrong = next(place for place, choice in enumerate(question.choices) if not choice.is_right)
    choices, because = page.locator(".bv-lesson .choice"), page.locator(".bv-lesson .because")
    choices.nth(wrong).click(timeout=30_000)
    expect(choices.nth(wrong)).to_contain_text("not so")
    expect(because).to_contain_text(plain(question.choices[wrong].because)[:40])
    expect(choices.nth(right)).not_to_contain_text("right")  # another guess is worth something
    choices.nth(right).click()
    expect(choices.nth(right)).to_contain_text("✓ right")
    expect(because).to_contain_text(plain(question.choices[right].because)[:40])
    page.reload()
    expect(choices.nth(right)).to_contain_text("✓ right", timeout=30_000)
    page.get_by_role("link", name="All lessons").click()
    expect(page.locator(".bv-lesson .lessons .state").first).to_have_text(re.compile(r"\d+ of \d+"))


def test_a_knob_is_turned_the_source_is_read_and_the_next_lesson_follows(page: Page, server: Server) -> None:
    cards = 1 + len(FIRST.stops) + len(FIRST.questions)
    page.goto(f"{server.url}/learn?lesson={FIRST.id}&stop={cards}")
    page.get_by_role("button", name="eight slots").click(timeout=30_000)
    expect(page.locator(".batchviz .pane").first.locator(".lane-holder > *")).to_have_count(8)
    expect(page.locator('[data-part="toggle"]')).to_have_attribute("data-playing", "true")
    expect(page.get_by_role("link", name="The same on the page Compare")).to_have_attribute(
        "href", re.compile(r"panes=static-8,continuous-8")
    )
    page.keyboard.press("n")
    expect(page.locator(".bv-lesson .source pre").first).to_contain_text("def may_release")
    page.keyboard.press("n")
    expect(page.locator(".bv-lesson .card")).to_contain_text("Further reading")
    page.get_by_role("button", name="Next lesson").click()
    expect(page.get_by_role("heading", name=list_lessons()[1].title)).to_be_visible()
    expect(page).to_have_url(re.compile(list_lessons()[1].id))


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_presenting_leaves_the_words_and_the_run_with_notes_below_the_fold(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{server.url}/learn?lesson={FIRST.id}&stop=4&present=1")
    expect(page.locator('[data-testid="stHeader"]')).to_be_hidden(timeout=30_000)
    size = page.locator(".bv-lesson .card p").nth(1).evaluate("one => parseFloat(getComputedStyle(one).fontSize)")
    assert size >= 22, "legible from the back row"
    for part in (".bv-lesson .card", ".bv-lesson .onward", ".batchviz .column.lanes"):
        box = page.locator(part).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 720, part
    notes = page.locator(".bv-lesson .notes")
    box = notes.bounding_box()
    assert box is not None
    assert box["y"] > 720
    expect(notes).to_contain_text(plain(FIRST.stops[2].note)[:30])
    page.keyboard.press("Escape")
    expect(page.locator('[data-testid="stHeader"]')).to_be_visible()


@pytest.mark.parametrize("page", ["light"], indirect=True)
@pytest.mark.parametrize(
    "query", ["lesson=nothing", "lesson=<img src=x onerror=window.hit=1>", "lesson=kv-cache&stop=-9e99", "stop=3"]
)
def test_a_broken_link_is_answered_calmly(page: Page, server: Server, query: str) -> None:
    page.goto(f"{server.url}/learn?{query}")
    wanted = ".card" if "kv-cache" in query else ".lessons li"
    expect(page.locator(f".bv-lesson {wanted}").first).to_be_visible(timeout=30_000)
    assert page.evaluate("window.hit") is None


@pytest.mark.parametrize("page", ["dark"], indirect=True)
def test_it_is_whole_on_a_phone(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 850})
    page.goto(f"{server.url}/learn?lesson=together-but-not-attention&stop=3")
    expect(page.locator(".bv-lesson .picture")).to_be_visible(timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
