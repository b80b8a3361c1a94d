"""The player in a real browser, on the page that `to_html` writes: what a person does with it, and what must not happen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from batchviz.export.html import to_html
from batchviz.scheduler import Policy
from batchviz.trace import Trace
from tests.story import make_trace, story

pytestmark = pytest.mark.e2e

HOSTILE = '<img src=x onerror="window.hit=1">'
Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of some traces; afterwards, whatever the console said is a failure."""
    said: list[str] = []
    contexts = []

    def open_traces(traces: list[Trace], *, reduced_motion: bool = False, width: int = 1280, html: str = "") -> Page:
        file = tmp_path / "page.html"
        file.write_text(to_html(traces).replace("</main>", html + "</main>"), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            reduced_motion="reduce" if reduced_motion else "no-preference",
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        expect(page.locator(".batchviz .lane").first).to_be_visible()
        return page

    yield open_traces
    for context in contexts:
        context.close()
    assert said == []


def step_of(page: Page) -> int:
    found = re.search(r"\d+", page.locator('[data-part="where"]').inner_text())
    assert found is not None
    return int(found.group())


def pause(page: Page) -> int:
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    return step_of(page)


def scrub_to(page: Page, step: int) -> None:
    page.locator(".scrub").fill(str(step))
    expect(page.locator('[data-part="where"]')).to_have_text(f"Step {step}")


def pane(page: Page, policy: str) -> Locator:
    return page.locator(f".pane.{policy}")


def test_it_plays_at_once_and_stops_when_told(open_page: Open) -> None:
    page = open_page(story())
    expect(page.locator('[data-part="where"]')).to_have_text(re.compile(r"Step [2-9]"))
    at = pause(page)
    page.wait_for_timeout(700)
    assert step_of(page) == at


def test_static_holds_and_withholds_while_continuous_refills_and_delivers(open_page: Open) -> None:
    page = open_page(story())
    scrub_to(page, 10)
    static, continuous = pane(page, "static"), pane(page, "continuous")
    expect(static.locator('.lane[data-phase="held"]')).to_have_count(2)
    expect(static.locator(".lane").first).to_contain_text("finished — slot held until the group ends")
    expect(static.locator(".answer.withheld")).to_have_count(2)
    expect(static.locator(".answer.delivered")).to_have_count(0)
    expect(static.locator(".waiting.head")).to_contain_text("group running")
    expect(continuous.locator('.lane[data-phase="held"]')).to_have_count(0)
    expect(continuous.locator(".answer.delivered")).to_have_count(2)
    expect(continuous.locator(".lane .badge").first).to_have_text("E")
    expect(continuous.locator(".waiting.head")).to_contain_text("no free slot")


def test_counters_are_those_of_the_schedule(open_page: Open) -> None:
    page = open_page(story())
    scrub_to(page, 319)
    expect(pane(page, "static").locator(".number.held b")).to_have_text("832")
    expect(pane(page, "static").locator(".number.working b")).to_have_text("448")
    expect(pane(page, "continuous").locator(".number.empty b")).to_have_text("352")
    expect(page.locator(".telling")).to_contain_text("260 steps under static")
    expect(page.locator(".telling")).to_contain_text("61.75 steps under continuous")


def test_steps_go_forward_and_back_to_exactly_the_same_picture(open_page: Open) -> None:
    page = open_page(story())
    scrub_to(page, 21)
    before = page.locator(".panes").inner_text()
    for _ in range(3):
        page.get_by_role("button", name="One step forward").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 24")
    assert page.locator(".panes").inner_text() != before
    for _ in range(3):
        page.get_by_role("button", name="One step back").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 21")
    assert page.locator(".panes").inner_text() == before


def test_events_are_visited_in_both_directions(open_page: Open) -> None:
    page = open_page(story())
    scrub_to(page, 5)
    page.get_by_role("button", name="Next event").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 14")
    page.get_by_role("button", name="Previous event").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 5")
    page.get_by_role("button", name="To the end").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 319")
    page.get_by_role("button", name="To the start").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 0")


def test_a_click_on_the_map_goes_there(open_page: Open) -> None:
    page = open_page(story())
    box = pane(page, "static").locator(".map").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 20)
    expect(page.locator('[data-part="where"]')).to_have_text(re.compile("Step (159|160|161)"))


def test_a_change_of_speed_or_clock_keeps_the_place(open_page: Open) -> None:
    page = open_page(story())
    scrub_to(page, 48)
    for speed in ("0.25", "16", "1"):
        page.get_by_label("Speed").select_option(speed)
        assert step_of(page) == 48
    page.get_by_label("Play by").select_option("time")
    expect(page.locator('[data-part="where"]')).to_contain_text(" s")
    expect(page.locator(".telling .told")).to_have_count(2)
    page.get_by_label("Play by").select_option("step")
    expect(page.locator('[data-part="where"]')).to_have_text("Step 48")


def test_speed_is_speed(open_page: Open) -> None:
    page = open_page(story())
    page.get_by_label("Speed").select_option("16")
    page.wait_for_timeout(1500)
    fast = pause(page)
    assert fast > 25  # 64 a second; at 1× it would be 4 a second


def test_keys_work_with_the_focus_and_not_while_typing_elsewhere(open_page: Open) -> None:
    page = open_page(story(), html='<input aria-label="outside">')
    scrub_to(page, 20)
    page.locator(".batchviz").focus()
    for key, step in (("ArrowRight", 21), ("ArrowLeft", 20), ("Shift+ArrowRight", 22), ("End", 319), ("Home", 0)):
        page.keyboard.press(key)
        expect(page.locator('[data-part="where"]')).to_have_text(f"Step {step}")
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    at = step_of(page)
    outside = page.get_by_label("outside")
    outside.focus()
    outside.press_sequentially("a b")
    for key in ("ArrowLeft", "End", "Home"):
        page.keyboard.press(key)
    page.wait_for_timeout(300)
    assert step_of(page) == at
    assert outside.input_value() == "a b"


def test_hostile_text_is_shown_as_text(open_page: Open) -> None:
    traces = story(
        lengths=(4, 9, 5),
        num_slots=2,
        ids=(HOSTILE, "</script><b>", "c"),
        prompts=(HOSTILE, "</script><script>window.hit=1</script>", "\u2028"),
        pieces=((HOSTILE, " x", " y", ""), ("</script>",) * 9, ("a\x00",) * 5),
    )
    page = open_page(traces)
    scrub_to(page, 3)
    expect(page.locator(".answer .words").first).to_contain_text("<img src=x")
    for step in range(9):
        scrub_to(page, step)
    assert page.locator(".batchviz img").count() == 0
    assert page.evaluate("window.hit") is None


@pytest.mark.parametrize(
    "traces",
    [
        story(lengths=[1], num_slots=1),
        story(max_steps=0),
        story(max_steps=30),
        story(aborts={6: "rome", 2: "greeting"}),
        [make_trace(Policy.CONTINUOUS)],
        [make_trace(policy, 3) for policy in Policy],
    ],
    ids=["one step", "no step", "unfinished", "aborts", "one pane", "three panes"],
)
def test_small_and_odd_runs_are_no_trouble(open_page: Open, traces: list[Trace]) -> None:
    page = open_page(traces)
    expect(page.locator(".pane")).to_have_count(len(traces))
    page.get_by_role("button", name="To the end").click()
    page.get_by_role("button", name="One step back").click()
    page.get_by_label("Play by").select_option("time")
    page.get_by_role("button", name="One step forward").click()
    assert "NaN" not in page.locator(".batchviz").inner_text()
    assert "undefined" not in page.locator(".batchviz").inner_text()


def test_reduced_motion_starts_paused_where_there_is_something_to_see(open_page: Open) -> None:
    page = open_page(story(), reduced_motion=True)
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    assert pane(page, "static").locator('.lane[data-phase="held"]').count() == 3
    at = step_of(page)
    page.wait_for_timeout(600)
    assert step_of(page) == at


def test_the_telling_line_is_spoken_only_when_it_stands_still(open_page: Open) -> None:
    page = open_page(story())
    page.wait_for_timeout(800)
    assert page.locator('[data-part="spoken"]').inner_text() == ""
    scrub_to(page, 2)
    expect(page.locator('[data-part="spoken"]')).to_contain_text("its slot is held")


def test_nothing_jumps_while_it_plays(open_page: Open) -> None:
    page = open_page(story())
    heights = set()
    for step in (0, 2, 14, 48, 199, 200, 259, 319):
        scrub_to(page, step)
        heights.add(page.locator(".batchviz").evaluate("(node) => node.getBoundingClientRect().height"))
    assert len(heights) == 1


def test_it_fits_a_narrow_screen(open_page: Open) -> None:
    page = open_page(story(), width=420)
    scrub_to(page, 20)
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
