"""The page in a real browser, on a real server: opened, played, turned at every knob, run live on the real model."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.app_server import ARTIFACTS, Server
from tests.e2e.conftest import errors_of

pytestmark = pytest.mark.e2e


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page, opened; afterwards any error in the console is a failure."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    errors = errors_of(page)
    open_app(page, server)
    yield page
    context.close()
    assert errors == []


def open_app(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.locator(".batchviz .lane").first).to_be_visible(timeout=30_000)


def step_of(page: Page) -> int:
    found = re.search(r"\d+", page.locator('[data-part="where"]').inner_text())
    assert found is not None
    return int(found.group())


def pause(page: Page) -> None:
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def scrub_to(page: Page, step: int) -> None:
    page.locator(".scrub").fill(str(step))
    expect(page.locator('[data-part="where"]')).to_have_text(f"Step {step}")


def settled(page: Page) -> None:
    expect(page.locator("[data-testid='stApp'][data-test-script-state='notRunning']")).to_be_visible(timeout=30_000)


def set_slots(page: Page, slots: int) -> None:
    field = page.locator(".st-key-slots input")
    field.fill(str(slots))
    field.press("Enter")
    expect(page.locator(".pane .lane")).to_have_count(2 * slots)


def choose(page: Page, key: str, words: str) -> None:
    page.locator(f".st-key-{key}").get_by_role("combobox").click()
    page.get_by_role("option", name=words).click()
    settled(page)


def test_it_opens_and_plays(page: Page) -> None:
    expect(page.locator(".pane")).to_have_count(2)
    expect(page.locator('[data-part="where"]')).to_have_text(re.compile(r"Step [2-9]"), timeout=15_000)


def test_the_web_process_never_loads_torch(page: Page, server: Server) -> None:
    maps = Path(f"/proc/{server.process_id}/maps")
    if not maps.exists():
        pytest.skip("this system has no /proc")
    assert "libtorch" not in maps.read_text()
    assert step_of(page) >= 0


def test_steps_go_forward_and_back(page: Page) -> None:
    pause(page)
    scrub_to(page, 20)
    before = page.locator(".panes").inner_text()
    page.get_by_role("button", name="One step forward").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 21")
    page.get_by_role("button", name="One step back").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 20")
    settled(page)
    assert page.locator(".panes").inner_text() == before


def test_a_change_of_speed_keeps_the_place(page: Page) -> None:
    pause(page)
    scrub_to(page, 40)
    page.locator('[data-part="speed"]').select_option(label="4×")
    assert step_of(page) == 40


def test_keys_work_on_the_player_and_not_while_typing(page: Page) -> None:
    pause(page)
    scrub_to(page, 30)
    page.locator(".batchviz").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator('[data-part="where"]')).to_have_text("Step 31")
    page.keyboard.press("Home")
    expect(page.locator('[data-part="where"]')).to_have_text("Step 0")
    page.keyboard.press("End")
    expect(page.locator('[data-part="where"]')).to_have_text("Step 306")
    slots = page.locator(".st-key-slots input")
    slots.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    expect(page.locator('[data-part="where"]')).to_have_text("Step 306")


def test_eight_slots_take_the_gain_away_and_the_label_says_modelled(page: Page) -> None:
    pause(page)
    set_slots(page, 8)
    page.get_by_role("button", name="To the end").click()
    expect(page.locator('[data-part="where"]')).to_have_text("Step 199")
    expect(page.locator(".pane.static .lane")).to_have_count(8)
    expect(page.get_by_text("modelled from what the recorded steps cost")).to_be_visible()


def test_policies_and_presets_change_at_once(page: Page) -> None:
    choose(page, "left", "sequential: one request at a time")
    expect(page.locator(".pane.sequential .lane")).to_have_count(1)
    choose(page, "preset", "Sixteen chats")
    expect(page.locator(".pane.static .lane")).to_have_count(8)
    expect(page.locator(".pane.continuous .lane")).to_have_count(8)


def test_the_page_does_not_rerun_by_itself_and_does_not_jump(page: Page) -> None:
    pause(page)
    settled(page)
    place = page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
    for _ in range(5):
        page.get_by_role("button", name="One step forward").click()
    settled(page)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == place
    running = page.locator("[data-testid='stApp'][data-test-script-state='running']")
    page.wait_for_timeout(1500)
    expect(running).to_have_count(0)


@pytest.mark.model
def test_a_live_run_is_cancelled_within_a_step(page: Page) -> None:
    page.get_by_role("button", name="Run it live").click()
    expect(page.get_by_text(re.compile("Running live on the model: run 1 of 2, step [1-9]"))).to_be_visible(
        timeout=240_000
    )
    started = time.perf_counter()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("the live run was cancelled")).to_be_visible(timeout=20_000)
    assert time.perf_counter() - started < 10
    expect(page.get_by_text("recorded from the model")).to_be_visible()  # what was there before is there again


@pytest.mark.model
@pytest.mark.timeout(600)
def test_the_same_chats_run_live_end_to_end(page: Page) -> None:
    choose(page, "preset", "One at a time")  # the shortest preset
    page.get_by_role("button", name="Run it live").click()
    expect(page.locator(".pane.sequential .chip").first).to_be_visible(timeout=120_000)  # steps come while it goes on
    page.screenshot(path=ARTIFACTS / "live.png")
    expect(page.get_by_text("Tokens: sampled live by the model")).to_be_visible(timeout=400_000)
    expect(page.get_by_text("Seconds: measured in that run")).to_be_visible()
    page.get_by_role("button", name="To the end").click()
    answers = page.locator(".pane.continuous .answer.delivered").count()
    assert answers > 3
    expect(page.locator(".pane.sequential .answer.delivered")).to_have_count(answers)
    slots = page.locator(".st-key-slots input")  # the live tokens re-schedule like recorded ones
    slots.fill("2")
    slots.press("Enter")
    settled(page)
    expect(page.locator(".pane.continuous .lane")).to_have_count(2)


@pytest.mark.parametrize(
    ("name", "width", "scheme", "step"),
    [
        ("light", 1400, "light", 13),
        ("dark", 1400, "dark", 60),
        ("narrow", 420, "light", 13),
        ("end", 1400, "light", 306),
    ],
)
def test_screenshots_are_kept(browser: Browser, server: Server, name: str, width: int, scheme: str, step: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    open_app(page, server)
    if name != "light":
        pause(page)
        scrub_to(page, step)
    settled(page)
    page.screenshot(path=ARTIFACTS / f"{name}.png", full_page=True)
    background = page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    brightness = sum(int(number) for number in re.findall(r"\d+", background)[:3]) / 3
    assert (brightness < 60) is (scheme == "dark")
    context.close()


def test_the_server_s_log_has_no_traceback(server: Server) -> None:
    assert "Traceback" not in server.log.read_text()


def test_in_a_frame_there_is_the_player_alone_as_its_address_says(browser: Browser, server: Server) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    page.goto(f"{server.url}/?embed=true&preset=sixteen-chats&step=12&play=0&controls=0")
    expect(page.locator(".batchviz .lane").first).to_be_visible(timeout=30_000)
    expect(page.locator('[data-part="where"]')).to_have_text(re.compile("Step 12"))
    expect(page.locator(".batchviz .controls")).to_be_hidden()
    expect(page.locator('[data-testid="stHeader"]')).to_be_hidden()
    page.wait_for_timeout(1_500)
    expect(page.get_by_role("button", name="Run it live")).to_have_count(0)
    page.goto(f"{server.url}/?embed=true&play=1&step=3&speed=16")
    expect(page.locator(".batchviz .controls")).to_be_visible(timeout=30_000)
    expect(page.locator('[data-part="where"]')).to_have_text(re.compile(r"Step \d{2,}"), timeout=30_000)
    page.close()
