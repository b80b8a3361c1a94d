"""A real Chromium for the browser tests: the one of the machine. Skips without it, except in CI, where it must be there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.e2e.app_server import Server, app_server

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


expect.set_options(timeout=15_000)  # a page's last charts come some seconds after the first paint


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        message = "no chromium on this machine: the browser tests need one (Debian: apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The real page, served for the tests of one file."""
    with app_server() as running:
        yield running


def errors_of(page: Page) -> list[str]:
    """A list that fills with whatever the page reports as an error, in the console or uncaught.

    But for one thing: Streamlit looks for its health endpoints under the address of a page first, and finds them at the
    root.
    """
    errors: list[str] = []

    def take(message: ConsoleMessage) -> None:
        is_probe = "404" in message.text and "/_stcore/" in message.location["url"]
        if message.type == "error" and not is_probe:
            errors.append(f"{message.text} ({message.location['url']})")

    page.on("console", take)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors
