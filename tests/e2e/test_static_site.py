"""The static site in a real browser, from a disk and under a sub-path: no dead link, no request elsewhere, it plays."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from batchviz.lesson import list_lessons
from batchviz.static_site import PRESETS, write_site
from tests.e2e.conftest import errors_of

pytestmark = pytest.mark.e2e

MAX_PAGE_BYTES = 500_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host") / "some" / "where"
    write_site(folder)
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site under a sub-path of a plain file host."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site.parent.parent))
    host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=host.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{host.server_port}/some/where/"
    host.shutdown()
    host.server_close()
    thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    errors = errors_of(page)
    yield page
    context.close()
    assert errors == []


def test_every_page_opens_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(
    page: Page, site: Path, address: str
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
    todo, seen = [urljoin(address, "index.html")], set()
    while todo:
        here = todo.pop()
        seen.add(here)
        page.goto(here)
        expect(page.locator(".batchviz .lane").first).to_be_visible()
        for href in page.eval_on_selector_all("a[href]", "links => links.map(one => one.href)"):
            target = href.split("#")[0].split("?")[0]
            assert target.startswith(address), f"{here} links to {href}"
            assert (site / urlsplit(target).path.rpartition("/")[2]).is_file(), f"{here}: dead link {href}"
            if target not in seen and target not in todo:
                todo.append(target)
    assert len(seen) == 1 + len(list_lessons()) + len(PRESETS)
    assert {url.split("#")[0] for url in asked if "favicon" not in url} == seen
    assert max(path.stat().st_size for path in site.iterdir()) < MAX_PAGE_BYTES


def test_a_lesson_works_from_a_disk_with_progress_and_address(page: Page, site: Path) -> None:
    first, second = list_lessons()[:2]
    page.goto((site / "index.html").as_uri())
    page.get_by_role("link", name=first.title).click()
    expect(page.get_by_role("heading", name=first.title)).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.press("PageDown")
    expect(page).to_have_url(re.compile(r"#stop=2$"))
    expect(page.locator('[data-part="where"]')).to_contain_text(f"Step {first.stops[1].step}")
    page.reload()
    expect(page.locator(".bv-lesson .card")).to_contain_text("Stop 2 of 5")
    page.get_by_role("button", name="Present").click()
    expect(page.locator(".bv-lesson")).to_have_attribute("data-present", "true")
    page.keyboard.press("Escape")
    num_cards = 4 + len(first.stops) + len(first.questions)
    for _ in range(num_cards - 2):  # the third card is on show; once more at the last leads to the next lesson
        page.keyboard.press("n")
    expect(page.get_by_role("heading", name=second.title)).to_be_visible()


def test_the_calculator_divides(page: Page, site: Path) -> None:
    lesson = list_lessons()[-1]
    cards = 1 + len(lesson.stops) + len(lesson.questions)
    page.goto(f"{(site / f'{lesson.id}.html').as_uri()}#stop={cards}")
    page.get_by_label("Euro an hour for the machine").fill("3.6")
    page.get_by_label("People who use it").fill("36")
    page.get_by_label("Answers each, an hour").fill("10")
    page.get_by_label("Tokens an answer").fill("100")
    page.get_by_label("Tokens a second, static batches").fill("4")
    row = page.locator(".calculator tr", has_text="static batches").locator("td")
    expect(row.nth(1)).to_have_text("250.00")  # 3.6 / (4 x 3600) x 1,000,000
    expect(row.nth(2)).to_have_text("3")  # 36,000 tokens an hour are 10 a second
    expect(row.nth(3)).to_have_text("10.8")
    page.get_by_label("Tokens a second, static batches").fill("0")
    expect(row.nth(1)).to_have_text("–")
