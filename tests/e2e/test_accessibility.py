"""Every page is looked at by axe: no serious finding, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from batchviz.export.html import to_html
from batchviz.recordings import load_recording
from batchviz.static_site import write_site
from tests.e2e.app_server import Server

pytestmark = pytest.mark.e2e

SERIOUS = ("serious", "critical")
# Of Streamlit's own making, which this project cannot mend: its tables are canvases, its selects name things their own way.
STREAMLITS_OWN = (
    "scrollable-region-focusable",
    "aria-allowed-attr",
    "aria-required-children",
    "aria-hidden-focus",
    "nested-interactive",
    "aria-input-field-name",
    "label-content-name-mismatch",
)


def findings(page: Page) -> list[str]:
    found = []
    for violation in Axe().run(page).response["violations"]:
        if violation["impact"] in SERIOUS:
            found += [f"{violation['id']}: {node['target']} {node['html'][:160]}" for node in violation["nodes"]]
    return found


@pytest.fixture(params=["light", "dark"])
def open_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Callable[[str, str], Page]]:
    context = browser.new_context(viewport={"width": 1300, "height": 1000}, color_scheme=request.param)

    def opened(address: str, wait_for: str) -> Page:
        page = context.new_page()
        page.goto(address)
        expect(page.locator(wait_for).first).to_be_visible(timeout=60_000)
        page.wait_for_timeout(800)
        return page

    yield opened
    context.close()


def test_exported_pages_and_the_static_site_have_no_serious_finding(
    open_page: Callable[[str, str], Page], tmp_path: Path
) -> None:
    write_site(tmp_path)
    (tmp_path / "run.html").write_text(to_html(load_recording("four-slots")), encoding="utf-8")
    places = {
        "index.html": ".batchviz .lane",
        "run.html": ".batchviz .lane",
        "together-but-not-attention.html#stop=3": ".picture",
        "finished-answers-wait.html#stop=3": ".choice",
        "what-it-is-worth.html#stop=6": ".calculator",
        "kv-cache.html#stop=8": ".card",
    }
    found = {name: findings(open_page((tmp_path / "x").as_uri()[:-1] + name, wait)) for name, wait in places.items()}
    assert {name: one for name, one in found.items() if one} == {}


@pytest.mark.parametrize(
    ("path", "wait_for"),
    [
        ("/", ".stSelectbox"),
        ("/learn", ".lessons li"),
        ("/learn?lesson=kv-cache&stop=2", ".card"),
        ("/debug", ".batchviz .lane"),
        ("/what-is-real", "h4"),
    ],
)
def test_the_apps_pages_have_no_serious_finding(
    open_page: Callable[[str, str], Page], server: Server, path: str, wait_for: str
) -> None:
    page = open_page(f"{server.url}{path}", wait_for)
    ours = [one for one in findings(page) if not one.startswith(STREAMLITS_OWN)]
    assert ours == []
