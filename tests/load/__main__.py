"""`make load`: thirty viewers of a real server on this machine, two real browsers among them, a live run meanwhile.

Owns: what the viewers do and when. Must not know: the protocol, how figures are said. Ends within five minutes; exit code 1
if a promise is broken. Everything stays on the loopback address.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil
from playwright.async_api import Browser, Page, async_playwright, expect

from batchviz.machine import describe_machine
from tests.e2e.app_server import Server, app_server
from tests.e2e.conftest import FLAGS
from tests.load.figures import Figures, Size, broken_promises, report
from tests.load.viewer import SessionFailedError, Viewer

NUM_VIEWERS = 30
ARRIVE_WITHIN_S = 10.0
AT_REST_S = 25.0
LIVE_S = 50.0
PAUSE_S = (5.0, 15.0)  # from one interaction of a viewer to the next: a person reads what changed
SESSION_KEPT_S = 3
LIMIT_S = 290.0
LINKS = ("preset=few-users", "preset=four-slots&chart=queue", "preset=burst-and-trickle", "preset=four-slots")
SLOTS = (2, 3, 5, 6, 8)

Deed = Callable[[Viewer], Awaitable[float]]


def deeds() -> list[Deed]:
    """Everything that a viewer may do: a knob is turned, a link is opened."""

    def slots(number: int) -> Deed:
        return lambda viewer: viewer.choose_slots(number)

    def link(query: str) -> Deed:
        return lambda viewer: viewer.open_link(query)

    return [*map(slots, SLOTS), *map(link, LINKS)]


class Load:
    """One measurement."""

    def __init__(self, server: Server, browser: Browser | None) -> None:
        self._server = server
        self._browser = browser
        self._process = psutil.Process(server.process_id)
        self._everybody_is_in = asyncio.Event()
        self._num_in = 0
        self._live = asyncio.Event()
        self._over = asyncio.Event()
        today = datetime.now(UTC).date().isoformat()
        self.figures = Figures(num_viewers=NUM_VIEWERS, machine=f"{describe_machine()}, {today}")

    async def measure(self) -> None:
        await self._warm_up()
        await asyncio.sleep(SESSION_KEPT_S + 4)
        self.figures.before = self._size()
        self.figures.load_average.append(os.getloadavg()[0])
        viewers = [asyncio.create_task(self._visit(number)) for number in range(NUM_VIEWERS)]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._everybody_is_in.wait(), ARRIVE_WITHIN_S + 40)
        await asyncio.sleep(2)
        self.figures.idle = self._size()
        cpu_s, began = self._cpu_s(), time.perf_counter()
        await asyncio.sleep(AT_REST_S)
        await self._run_live()
        self.figures.server_cpu = (self._cpu_s() - cpu_s) / (time.perf_counter() - began)
        self.figures.load_average.append(os.getloadavg()[0])
        self._over.set()
        await asyncio.gather(*viewers)
        await asyncio.sleep(2 * SESSION_KEPT_S + 6)
        async with Viewer(self._server.url) as viewer:  # Streamlit lets go of old sessions when the next one comes
            await viewer.open()
        await asyncio.sleep(SESSION_KEPT_S + 2)
        self.figures.after = self._size()

    async def _warm_up(self) -> None:
        """The first visitor loads what is loaded once; doing everything once fills the caches, which are bounded."""
        async with Viewer(self._server.url) as viewer:
            self.figures.first_visitor_s = await viewer.open()
            await viewer.say_painted()
            for deed in deeds():
                await deed(viewer)

    async def _visit(self, number: int) -> None:
        """Comes within ten seconds, looks, and does something now and then until all is over."""
        dice = random.Random(number)
        await asyncio.sleep(ARRIVE_WITHIN_S * number / NUM_VIEWERS)
        try:
            began = time.perf_counter()
            await asyncio.to_thread(self._first_answer)
            self.figures.first_answer_s.append(time.perf_counter() - began)
            began = time.perf_counter()
            async with Viewer(self._server.url) as viewer:
                await viewer.open()
                self.figures.first_paint_s.append(time.perf_counter() - began)
                self.figures.whole_page_s.append(await viewer.say_painted())
                self._enter()
                await self._everybody_is_in.wait()
                await asyncio.sleep(3)
                while not self._over.is_set():
                    await self._pause(dice.uniform(*PAUSE_S))
                    if self._over.is_set():
                        break
                    is_live = self._live.is_set()
                    took = await dice.choice(deeds())(viewer)
                    (self.figures.live_s if is_live else self.figures.at_rest_s).append(took)
        except (SessionFailedError, OSError, TimeoutError) as error:
            self.figures.failures.append(str(error) or type(error).__name__)
            self._enter()

    def _first_answer(self) -> None:
        """What a browser asks for first, with the player in it: seen before Streamlit's script is read, let alone run."""
        with urllib.request.urlopen(self._server.url, timeout=60) as response:
            if b'id="batchviz-cover"' not in response.read():
                raise SessionFailedError("the first answer has no player in it")

    def _enter(self) -> None:
        self._num_in += 1
        if self._num_in >= NUM_VIEWERS:
            self._everybody_is_in.set()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    async def _run_live(self) -> None:
        """Two real browsers come; one of them runs the model."""
        if self._browser is None:
            return
        first, second = [await self._open_page(self._browser) for _ in range(2)]
        await first.get_by_role("button", name="Run it live").click()
        progress = first.get_by_text("Running live on the model")
        await expect(progress).to_be_visible(timeout=90_000)
        self._live.set()
        await asyncio.sleep(LIVE_S)
        is_on = await progress.is_visible()
        self.figures.live_steps = (await progress.inner_text()) if is_on else "over before the interactions were"
        self._live.clear()
        await first.context.close()
        await second.context.close()

    async def _open_page(self, browser: Browser) -> Page:
        page = await (await browser.new_context()).new_page()
        began = time.perf_counter()
        await page.goto(self._server.url)
        await expect(page.locator("canvas:visible").first).to_be_visible(timeout=60_000)
        self.figures.browser_paint_s.append(time.perf_counter() - began)
        await expect(page.get_by_role("button", name="Run it live")).to_be_visible(timeout=60_000)
        return page

    def _cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _size(self) -> Size:
        """The server's own process, without the model's."""
        return Size(self._process.memory_info().rss / 1e6, self._process.num_threads())


async def main() -> int:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    options = ("--server.disconnectedSessionTTL", str(SESSION_KEPT_S))
    with app_server(options) as server:
        async with async_playwright() as playwright:
            browser = None
            if path is not None and Path(path).exists():
                browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
            load = Load(server, browser)
            try:
                async with asyncio.timeout(LIMIT_S):
                    await load.measure()
            except TimeoutError:
                load.figures.failures.append(f"it was not over after {LIMIT_S:.0f} s")
            if browser is not None:
                await browser.close()
    print(report(load.figures))
    broken = broken_promises(load.figures)
    print("\n".join(f"BROKEN: {one}" for one in broken) or "every promise was kept")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
