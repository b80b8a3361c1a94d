"""The player is seen within two seconds, before Streamlit's own script has been read, and then nothing moves."""

from __future__ import annotations

import re
import statistics
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.app_server import ARTIFACTS, Server
from tests.e2e.conftest import errors_of

pytestmark = pytest.mark.e2e

PROMISE_S = 2.0  # from navigation to the player, median of five, warm server
ROUNDS = 3  # a machine that does something else for a moment gets another chance
COVER = "#batchviz-cover"


def seconds_to_player(browser: Browser, url: str) -> float:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    started = time.perf_counter()
    page.goto(url, wait_until="commit")
    expect(page.locator(".batchviz .lane").first).to_be_visible(timeout=30_000)
    seconds = time.perf_counter() - started
    context.close()
    return seconds


def test_the_player_is_seen_within_two_seconds(browser: Browser, server: Server) -> None:
    seconds_to_player(browser, server.url)  # warms the server
    medians = []
    for _ in range(ROUNDS):
        medians.append(statistics.median(seconds_to_player(browser, server.url) for _ in range(5)))
        if medians[-1] < PROMISE_S:
            break
    ARTIFACTS.joinpath("first-paint.txt").write_text(f"{medians} s, each a median of 5\n")
    assert min(medians) < PROMISE_S


def place(page: Page) -> tuple[int, ...]:
    boxes = [page.locator(part).first.bounding_box() for part in (".batchviz", ".pane", ".controls")]
    return tuple(round(box[side]) for box in boxes if box is not None for side in ("x", "y", "width", "height"))


def step_of(page: Page) -> int:
    return int(re.sub(r"\D", "", page.locator('[data-part="where"]').inner_text()))


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_player_moves_in_without_moving(browser: Browser, server: Server, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    errors = errors_of(page)
    page.goto(server.url, wait_until="commit")
    expect(page.locator(f"{COVER} .lane").first).to_be_visible()
    page.locator(f"{COVER} [data-action=toggle]").click()  # what stands still can be compared to the pixel
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    colour = "element => getComputedStyle(element).color"
    covered, step, ink = place(page), step_of(page), page.locator(".pane h3").first.evaluate(colour)
    page.screenshot(path=ARTIFACTS / f"cover-{scheme}-{width}.png")
    expect(page.locator(COVER)).to_have_count(0, timeout=30_000)
    expect(page.locator(".batchviz")).to_have_count(1)
    assert place(page) == covered
    assert step_of(page) == step
    assert page.locator(".pane h3").first.evaluate(colour) == ink
    expect(page.get_by_role("button", name="Run it live")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("The figures")).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="One step forward").click()  # the one who moved in tells Python where it rests
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_text(re.compile(rf"step={step_of(page)}\b"))).to_be_visible(timeout=10_000)
    assert errors == []
    context.close()


def test_what_is_done_before_streamlit_has_come_is_kept(browser: Browser, server: Server) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(server.url, wait_until="commit")
    page.locator(f"{COVER} [data-action=end]").click()
    where = page.locator('[data-part="where"]')
    expect(where).to_have_text("Step 306")
    expect(page.locator(COVER)).to_have_count(0, timeout=30_000)
    expect(where).to_have_text("Step 306")
    page.get_by_role("button", name="Share").click(timeout=30_000)
    expect(page.get_by_text(re.compile(r"step=306\b"))).to_be_visible(timeout=10_000)
    page.close()


def test_a_link_opens_without_a_cover(browser: Browser, server: Server) -> None:
    page = browser.new_page()
    page.goto(f"{server.url}/?preset=eight-chats", wait_until="commit")
    expect(page.locator(".batchviz .lane").first).to_be_visible(timeout=30_000)
    expect(page.locator(COVER)).to_have_count(0)
    expect(page.locator(".pane.static .lane")).to_have_count(8)
    page.close()


def test_what_streamlit_has_to_say_is_not_covered_for_ever(browser: Browser, server: Server) -> None:
    page = browser.new_page()
    page.clock.install()
    page.route("**/static/js/*", lambda route: route.abort())
    page.goto(server.url, wait_until="commit")
    expect(page.locator(f"{COVER} .lane").first).to_be_visible()
    page.clock.fast_forward(21_000)
    expect(page.locator(f"{COVER} .lane").first).to_be_visible()  # better a player than a blank page
    page.evaluate("document.getElementById('root').append(document.createElement('p'))")
    page.clock.fast_forward(21_000)
    expect(page.locator(COVER)).to_have_count(0)
    page.close()


def test_focus_and_scrolling_move_in_too(browser: Browser, server: Server) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 700})
    page.goto(server.url, wait_until="commit")
    toggle = page.locator(f"{COVER} [data-action=toggle]")
    toggle.focus()
    page.locator(COVER).evaluate("element => { element.scrollTop = 150 }")
    expect(page.locator(COVER)).to_have_count(0, timeout=30_000)
    expect(page.locator("[data-action=toggle]")).to_be_focused()
    expect(page.get_by_text("The figures")).to_be_visible(timeout=30_000)
    assert page.locator("[data-testid='stMain']").evaluate("element => element.scrollTop") == 150
    page.close()


def test_the_rest_comes_even_where_the_player_is_never_seen(browser: Browser, server: Server) -> None:
    page = browser.new_page()
    page.add_init_script("window.requestAnimationFrame = () => 0")
    page.goto(f"{server.url}/?preset=eight-chats")
    expect(page.get_by_role("button", name="Run it live")).to_be_visible(timeout=30_000)
    page.close()


def test_what_comes_while_somebody_drags_waits_until_they_let_go(browser: Browser, server: Server) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.route("**/static/js/*", lambda route: route.abort())  # the player alone, with a door to it
    page.goto(server.url, wait_until="commit")
    map_ = page.locator(f"{COVER} .map").first
    box = map_.bounding_box()
    assert box is not None
    map_.evaluate("element => { element.dataset.same = 'yes' }")
    page.mouse.move(box["x"] + 100, box["y"] + 30)
    page.mouse.down()
    page.evaluate("""() => {
      const payload = JSON.parse(document.getElementById("batchviz-payload").textContent);
      window.batchvizFirst.player.load({ ...payload, content: "grown" });
    }""")
    page.mouse.move(box["x"] + 200, box["y"] + 30)
    before = step_of(page)
    page.mouse.move(box["x"] + 300, box["y"] + 30)
    page.wait_for_function(f"document.querySelector('[data-part=\"where\"]').textContent !== 'Step {before}'")
    expect(page.locator(f"{COVER} .map[data-same]")).to_have_count(1)
    page.mouse.up()
    expect(page.locator(f"{COVER} .map[data-same]")).to_have_count(0)
    assert step_of(page) > before
    page.close()
