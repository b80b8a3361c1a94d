"""The page *Debug* in a real browser: stepping by key and by button, a breakpoint, a fork side by side, hostile words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.app_server import ARTIFACTS, Server
from tests.e2e.conftest import errors_of

pytestmark = pytest.mark.e2e


@pytest.fixture(params=["light", "dark"])
def page(browser: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, color_scheme=request.param)
    page = context.new_page()
    page.set_default_timeout(30_000)
    errors = errors_of(page)
    page.goto(f"{server.url}/debug")
    expect(page.locator(".batchviz .lane").first).to_be_visible(timeout=60_000)
    yield page
    page.screenshot(path=ARTIFACTS / f"debug-{request.param}.png", full_page=True)
    page.set_viewport_size({"width": 390, "height": 850})
    page.screenshot(path=ARTIFACTS / f"debug-{request.param}-narrow.png", full_page=True)
    context.close()
    assert errors == []


def says(page: Page, text: str) -> None:
    expect(page.get_by_text(text).first).to_be_visible()


def test_a_run_is_driven_by_hand(page: Page) -> None:
    says(page, "of 0–0 made so far")
    page.get_by_text("Stop anywhere").click()  # nothing that takes keys for itself
    page.keyboard.press("n")
    says(page, "of 0–1 made so far")
    expect(page.locator('[data-part="where"]')).to_contain_text("Step 1")
    page.get_by_role("button", name="Into").click()
    says(page, "of 0–2 made so far")
    says(page, "arrivals and admissions")
    page.get_by_role("textbox", name="Stop where").fill("finished capital")
    page.get_by_role("button", name="Add").click()
    says(page, "Stops from now on where: finished capital")
    page.get_by_role("button", name="Continue").click()
    says(page, "Stopped at step 7: capital finished.")
    page.get_by_text("Queue", exact=True).first.click()
    expect(page.locator("[data-testid='stDataFrame']")).to_be_visible()
    page.get_by_role("button", name="Fork").click()
    says(page, "The same 8 steps, replayed and checked; from here on continuous.")
    expect(page.locator(".batchviz .pane")).to_have_count(2)
    page.get_by_text("Decisions", exact=True).click()
    page.locator(".st-key-debug_Step button").click()
    says(page, "colors was admitted to slot 0")
    page.locator(".st-key-debug_Back button").click()
    says(page, "Step 7 of 0–8 made so far")


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_the_live_model_is_driven_by_hand(page: Page) -> None:
    page.get_by_text("the live model", exact=True).click()
    says(page, "come from it now")
    page.get_by_text("Sampling", exact=True).click()
    expect(page.get_by_text("the likeliest is taken").first).to_be_visible(timeout=120_000)
    page.get_by_role("textbox", name="A request arrives").fill("Name one fruit.")
    page.get_by_role("button", name="Inject").click()
    says(page, "new-1 arrives with the next step")
    page.locator(".st-key-debug_Step button").click()
    says(page, "of 0–1 made so far")
    expect(page.get_by_role("button", name="Fork")).to_have_count(1)  # what stood there before is gone
    page.get_by_role("button", name="Fork").click()
    says(page, "The same 2 steps, replayed and checked")
    expect(page.locator(".batchviz .pane")).to_have_count(2)
    page.get_by_text("Attention", exact=True).first.click()
    says(page, "Linear layers: one block.")
    page.get_by_text("recorded", exact=True).click()  # leaves the seat to the next
    says(page, "of 0–0 made so far")


def test_what_is_typed_is_never_markup(page: Page) -> None:
    page.get_by_role("textbox", name="Stop where").fill('text "<img src=x onerror=window.hit=1>[a](javascript:1)"')
    page.get_by_role("button", name="Add").click()
    says(page, "onerror=window.hit=1")
    expect(page.locator("img[src='x'], a[href^='javascript']")).to_have_count(0)
    assert page.evaluate("window.hit") is None
