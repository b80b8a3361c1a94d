"""In a real browser: charts that follow the player, links there and back, files in and out, the other page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from batchviz.link import scenario_to_text
from batchviz.presets import load_scenario
from batchviz.scenario import Scenario, ScenarioRequest
from batchviz.scenario_file import dump_scenario
from batchviz.trace_file import bundle_to_json, read_traces
from tests.e2e.app_server import ARTIFACTS, Server
from tests.e2e.conftest import errors_of
from tests.e2e.test_app_page import pause, scrub_to, settled
from tests.story import story

pytestmark = pytest.mark.e2e


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """A page on nothing yet; afterwards any error in the console is a failure."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    errors = errors_of(page)
    yield page
    context.close()
    assert errors == []


def open_at(page: Page, server: Server, query: str = "") -> None:
    page.goto(server.url + query)
    expect(page.locator(".batchviz .lane").first).to_be_visible(timeout=60_000)


def where(page: Page) -> str:
    return page.locator('[data-part="where"]').inner_text()


def link_of(page: Page) -> str:
    page.get_by_role("button", name="Share").click()
    found = page.locator("[data-testid='stPopoverBody'] code")
    expect(found).to_be_visible()
    text = found.inner_text()
    page.keyboard.press("Escape")
    return text


def test_every_chart_is_drawn_and_said_in_words(page: Page, server: Server) -> None:
    open_at(page, server)
    pause(page)
    for name in ("Slots", "Queue", "Tokens per second", "KV memory", "Waits", "Requests"):
        page.get_by_role("radio", name=name, exact=True).or_(page.get_by_text(name, exact=True)).first.click()
        charts = page.locator("[data-testid='stVegaLiteChart']")
        expect(charts.first.locator("canvas, svg").first).to_be_visible()
        settled(page)
        said = charts.first.locator("[aria-label]").first.get_attribute("aria-label") or ""
        assert re.search(r"\d", said), f"{name}: {said}"


def test_the_cursor_of_the_charts_follows_the_player_without_a_blink(page: Page, server: Server) -> None:
    open_at(page, server, "?chart=queue")
    pause(page)
    scrub_to(page, 40)
    page.get_by_role("button", name="One step forward").click()
    drawn = page.locator("[data-testid='stVegaLiteChart'] canvas, [data-testid='stVegaLiteChart'] svg").first
    expect(drawn).to_be_visible()
    drawn.evaluate("element => { element.dataset.same = 'yes' }")
    before = drawn.screenshot()
    scrub_to(page, 200)
    page.get_by_role("button", name="One step forward").click()
    page.wait_for_timeout(1_500)
    settled(page)
    assert drawn.get_attribute("data-same") == "yes"  # the same element: its data changed, it was not built anew
    assert drawn.screenshot() != before


def test_a_link_opens_what_was_seen(page: Page, server: Server) -> None:
    open_at(page, server)
    pause(page)
    page.locator('[data-part="speed"]').select_option(label="4×")
    page.locator(".st-key-slots input").fill("2")
    page.locator(".st-key-slots input").press("Enter")
    expect(page.locator(".pane .lane")).to_have_count(4)
    scrub_to(page, 60)
    page.get_by_role("button", name="One step forward").click()
    page.wait_for_timeout(1_000)
    settled(page)
    link = link_of(page)
    assert "panes=static-2,continuous-2" in link
    assert "step=61" in link
    assert "speed=4" in link
    page.goto(link)
    expect(page.locator(".pane .lane")).to_have_count(4, timeout=60_000)
    expect(page.locator('[data-part="where"]')).to_have_text("Step 61")
    expect(page.locator('[data-part="speed"]')).to_have_value("4")


def test_another_speed_leaves_the_step_of_the_link_alone(page: Page, server: Server) -> None:
    open_at(page, server, "/?step=30")
    expect(page.get_by_role("button", name="Share")).to_be_visible()
    page.locator('[data-part="speed"]').select_option(label="4×")
    page.wait_for_timeout(1_000)
    settled(page)
    link = link_of(page)
    assert "step=30" in link
    assert "speed=4" in link


def test_the_browser_s_back_button_turns_the_knobs_back(page: Page, server: Server) -> None:
    open_at(page, server)
    page.locator(".st-key-slots input").fill("6")
    page.locator(".st-key-slots input").press("Enter")
    expect(page.locator(".pane .lane")).to_have_count(12)
    expect(page).to_have_url(re.compile("static-6"))
    page.go_back()
    expect(page.locator(".pane .lane")).to_have_count(8)


def test_a_third_pane_and_pieces_of_prompts(page: Page, server: Server) -> None:
    open_at(page, server)
    page.get_by_role("button", name="Settings").click()
    page.locator(".st-key-third").get_by_role("combobox").click()
    page.get_by_role("option", name="sequential: one request at a time").click()
    expect(page.locator(".pane.sequential .lane")).to_have_count(1)
    page.locator(".st-key-prefill_right").get_by_role("combobox").click()
    page.get_by_role("option", name="chunked: in pieces").click()
    expect(page.get_by_text("2: continuous, 4 slots, chunked by 64").first).to_be_visible()
    expect(page.locator(".pane")).to_have_count(3)
    page.screenshot(path=ARTIFACTS / "three-panes.png")


def test_a_scenario_goes_out_and_comes_in_again(page: Page, server: Server, tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(dump_scenario(load_scenario("golden-lengths")))
    open_at(page, server)
    page.get_by_role("button", name="Open a file").click()
    page.locator("input[type=file]").set_input_files(scenario)
    expect(page.get_by_text("No model: lengths only")).to_be_visible()
    expect(page.locator(".pane")).to_have_count(3)
    expect(page).to_have_url(re.compile("scenario="))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Share").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Scenario (YAML)").click()
    assert Path(saved.value.path()).read_text() == scenario.read_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Trace (JSON)").click()
    trace = tmp_path / "saved.json"
    saved.value.save_as(trace)
    assert [str(run.config.policy) for run in read_traces(trace)] == ["sequential", "static", "continuous"]
    with page.expect_download() as saved:
        page.get_by_role("button", name="Steps (CSV)").click()
    assert Path(saved.value.path()).read_text(encoding="utf-8-sig").startswith("run,step,start_s")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Picture (PNG)").click()
    assert saved.value.suggested_filename == "golden-lengths.png"
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Web page (HTML)").click()
    assert Path(saved.value.path()).read_text(encoding="utf-8").startswith("<!doctype html>")
    page.reload()  # the scenario travels in the address
    expect(page.locator(".pane")).to_have_count(3, timeout=60_000)
    expect(page.get_by_text("No model: lengths only")).to_be_visible()


def test_a_changed_prompt_is_kept_while_its_table_is_closed(page: Page, server: Server) -> None:
    open_at(page, server, "/?play=0")
    page.get_by_text("Change the prompts").click()
    table = page.locator("[data-testid='stDataFrame']:visible").first
    cells = table.locator("[role=gridcell]")
    expect(cells.filter(has_text="Name three primary colors.")).to_be_attached()
    table.scroll_into_view_if_needed()
    settled(page)
    cell = page.locator("#portal textarea")
    for _ in range(10):  # the table is a canvas, and deaf while it is laid out
        table.click(position={"x": 300, "y": 52})  # the first prompt
        page.wait_for_timeout(300)
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        if cell.is_visible():
            break
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Name a fish.")
    page.wait_for_timeout(400)  # nobody types and presses in the same millisecond; its editor needs some
    page.keyboard.press("Enter")
    expect(cells.filter(has_text="Name a fish.")).to_be_attached()
    settled(page)
    page.get_by_text("Change the prompts").click()
    expect(page.locator("[data-testid='stDataFrame']:visible")).to_have_count(1)  # the figures
    page.get_by_text("Change the prompts").click()
    expect(cells.filter(has_text="Name a fish.")).to_be_attached()
    page.get_by_role("combobox", name="Preset").click()
    page.get_by_role("option", name="Few users").click()
    expect(cells.filter(has_text="Name a fish.")).to_have_count(0)


def test_a_bad_file_gets_one_calm_sentence(page: Page, server: Server, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"requests": [{"id": "<img src=x onerror=alert(1)>", "prompt": "", "max_tokens": 3}]}))
    open_at(page, server)
    page.get_by_role("button", name="Open a file").click()
    page.locator("input[type=file]").set_input_files(bad)
    expect(page.get_by_text("This file was not opened")).to_be_visible()
    expect(page.locator(".pane .lane")).to_have_count(8)


def test_the_other_page_is_one_click_away_and_the_view_is_there_on_return(page: Page, server: Server) -> None:
    open_at(page, server, "?panes=static-2,continuous-2&step=30")
    page.get_by_role("link", name="What is real here").click()
    expect(page.get_by_text("How each figure is computed")).to_be_visible()
    expect(page.get_by_text("static, 2 slots: seconds modelled as")).to_be_visible()
    page.screenshot(path=ARTIFACTS / "what-is-real.png")
    page.get_by_role("link", name="Compare").click()
    expect(page.locator(".pane .lane")).to_have_count(4)
    expect(page.locator('[data-part="where"]')).to_have_text("Step 30")


def test_the_other_page_opens_by_its_own_link(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/what-is-real")
    expect(page.get_by_text("four-bit ones made dense again")).to_be_visible(timeout=60_000)


HOSTILE = '<img src=x onerror="window.hit=1"> [a](javascript:window.hit=1) $x$ :red[y] `z`'


def test_hostile_text_is_text_everywhere_on_the_page(page: Page, server: Server, tmp_path: Path) -> None:
    traces = [
        replace(trace, scenario=replace(trace.scenario, name="n", title=HOSTILE, look_for=HOSTILE))
        for trace in story(
            ids=(HOSTILE, "</script><b>"), prompts=(HOSTILE, HOSTILE), pieces=((HOSTILE,) * 4,) * 2, lengths=(4, 4)
        )
    ]
    file = tmp_path / f"{'x' * 30}<b>.json"
    file.write_text(bundle_to_json(traces))
    open_at(page, server)
    pause(page)
    page.get_by_role("button", name="Open a file").click()
    page.locator("[data-testid='stFileUploader'] input").set_input_files(file)
    expect(page.locator(".chip").filter(has_text="<img src=x").first).to_be_visible()
    expect(page.locator("[data-testid='stCaptionContainer']").filter(has_text="<img src=x").first).to_contain_text(
        HOSTILE
    )
    page.keyboard.press("Escape")
    for name in ("Slots", "Queue", "Tokens per second", "KV memory", "Waits", "Requests"):
        page.get_by_role("radio", name=name, exact=True).or_(page.get_by_text(name, exact=True)).first.click()
        settled(page)
    for box in ("Change the prompts", "The numbers behind the charts", "Every request: prompts"):
        page.get_by_text(box).click()
    expect(page.locator("[data-testid='stDataFrame']:visible")).to_have_count(4)
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_role("button", name="Perfetto")).to_be_visible()
    page.screenshot(path=ARTIFACTS / "hostile.png", full_page=True)
    for what in ("img[src='x']", "a[href^='javascript']", "b", ".katex"):
        expect(
            page.locator(f"[data-testid='stMain'] :is(p, span, div) > {what}:not([data-part]):not(.batchviz b)")
        ).to_have_count(0)
    assert page.evaluate("window.hit") is None


def test_a_link_opens_in_the_theme_that_it_says(browser: Browser, server: Server) -> None:
    for theme, other in (("dark", "light"), ("light", "dark")):
        context = browser.new_context(color_scheme=other)  # type: ignore[arg-type]
        page = context.new_page()
        open_at(page, server, f"/?theme={theme}")
        expect(page.get_by_role("button", name="Run it live")).to_be_visible(timeout=30_000)
        paper = page.locator(".stApp").evaluate("element => getComputedStyle(element).backgroundColor")
        red = int(re.findall(r"\d+", paper)[0])
        assert (red < 60) if theme == "dark" else (red > 200)
        assert f"theme={theme}" in link_of(page)
        context.close()


@pytest.mark.model
@pytest.mark.timeout(600)
def test_a_message_joins_the_running_batch_and_waits_for_the_static_group(page: Page, server: Server) -> None:
    story = ScenarioRequest("story", 120, prompt="Write a long story about a dog and the sea.")
    scenario = scenario_to_text(Scenario("chat", "Chat", (story,), num_slots=2))
    page.goto(f"{server.url}/?scenario={scenario}")
    expect(page.get_by_text("no recorded answers yet")).to_be_visible(timeout=60_000)
    page.get_by_text("Chat with it").click()
    page.get_by_role("button", name="Run it live").click()
    box = page.get_by_placeholder("Write to it while it runs")
    expect(box).to_be_visible(timeout=240_000)
    box.fill("Say <b>hi</b>.")
    box.press("Enter")
    expect(page.get_by_text("Your message is in every queue")).to_be_visible()
    page.screenshot(path=ARTIFACTS / "chat.png")
    expect(page.get_by_text("Tokens: sampled live by the model")).to_be_visible(timeout=400_000)
    page.get_by_role("button", name="To the end").click()
    for pane in ("static", "continuous"):
        expect(page.locator(f".pane.{pane} .answer.delivered")).to_have_count(2)


def test_the_server_s_log_has_no_traceback(server: Server) -> None:
    assert "Traceback" not in server.log.read_text()
