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
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
from playwright.async_api import Browser, Page, async_playwright, expect

from batchviz.lesson import list_lessons
from batchviz.machine import describe_machine
from batchviz.ui.tidy import WAIT_S
from tests.e2e.app_server import Server, app_server
from tests.e2e.conftest import FLAGS
from tests.load.figures import Figures, Size, broken_promises, report
from tests.load.viewer import SessionFailedError, Viewer

NUM_VIEWERS = 30
ARRIVE_WITHIN_S = 10.0
AT_REST_S = 25.0
LIVE_S = 50.0
TOGETHER_S = 20.0
PAUSE_S = (5.0, 15.0)  # from one interaction of a viewer to the next: a person reads what changed
SESSION_KEPT_S = 3
LIMIT_S = 290.0
EVERY_SUCH_READS = 3  # every third viewer reads lessons, the others look at runs
USUAL = "preset=four-slots"
LINKS = ("preset=few-users", "preset=four-slots&chart=queue", "preset=burst-and-trickle", USUAL)
SLOTS = (2, 3, 5, 6, 8)
CHARTS = ("Requests", "Slots", "Queue", "Tokens per second", "KV memory", "Waits")
LAST_STEP = 150
FIRST_LESSON = list_lessons()[0].id
LOWEST = 19  # niceness
RUNNING = "Running live on the model"

Deed = Callable[[Viewer], Awaitable[float]]


def deeds(reads: bool) -> dict[str, list[Deed]]:
    """Everything that a viewer may do, by kind: whoever reads goes from lesson to lesson; the others seek, look at another
    chart, turn a knob, open a link.
    """

    def made(deed: Callable[[Viewer, Any], Awaitable[float]], values: Iterable[Any]) -> list[Deed]:
        return [lambda viewer, value=value: deed(viewer, value) for value in values]  # type: ignore[misc]

    if reads:
        return {"next lesson": made(Viewer.next_lesson, [lesson.id for lesson in list_lessons()])}
    return {
        "seek": made(Viewer.rest_at, range(LAST_STEP)),
        "chart": made(Viewer.choose_chart, CHARTS),
        "knob": made(Viewer.choose_slots, SLOTS),
        "link": made(Viewer.open_link, LINKS),
    }


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
        await asyncio.to_thread(self._first_answer)  # the next visitor: with him Streamlit lets go of old sessions,
        async with Viewer(self._server.url) as viewer:  # and the server of threads that had nothing to do
            await viewer.open()
        await asyncio.sleep(SESSION_KEPT_S + WAIT_S + 2)
        self.figures.after = self._size()

    async def _warm_up(self) -> None:
        """The first visitor loads what is loaded once, the first live run starts the model's process; doing everything once
        fills the caches, which are bounded.
        """
        async with Viewer(self._server.url) as viewer:
            self.figures.first_visitor_s = await viewer.open()
            await viewer.say_painted()
            for deed in chain(*(kind[:10] for kind in deeds(reads=False).values())):
                await deed(viewer)
            await viewer.open_lesson(FIRST_LESSON)
            for deed in chain(*deeds(reads=True).values()):
                await deed(viewer)
        if self._browser is not None:
            page, _ = await self._begin_live(self._browser)
            await page.get_by_role("button", name="Cancel").click()
            await expect(page.get_by_text("the live run was cancelled")).to_be_visible(timeout=30_000)
            await page.context.close()

    async def _visit(self, number: int) -> None:
        """Comes within ten seconds, looks, and does something now and then until all is over."""
        dice, reads = random.Random(number), number % EVERY_SUCH_READS == 0
        kinds = list(deeds(reads).items())
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
                if reads:
                    await viewer.open_lesson(FIRST_LESSON)
                while not self._over.is_set():
                    await self._pause(dice.uniform(*PAUSE_S))
                    if self._over.is_set():
                        break
                    kind, choice = dice.choice(kinds)
                    took_place = self.figures.live_s if self._live.is_set() else self.figures.at_rest_s
                    took_place.setdefault(kind, []).append(await dice.choice(choice)(viewer))
                if not reads:
                    await self._run_together(viewer)
        except (SessionFailedError, OSError, TimeoutError) as error:
            self.figures.failures.append(str(error) or type(error).__name__)
            self._enter()

    async def _run_together(self, viewer: Viewer) -> None:
        """Everybody presses the same button, and watches the one run that they share."""
        await viewer.open_link(USUAL)
        self.figures.press_s.append(await viewer.run_live())
        end = time.perf_counter() + TOGETHER_S
        while time.perf_counter() < end and (took := await viewer.watch()) is not None:
            self.figures.watch_s.append(took)

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
        second, second_s = await self._open_page(self._browser)
        first, first_s = await self._begin_live(self._browser)
        self.figures.browser_paint_s += [second_s, first_s]
        progress = first.get_by_text(RUNNING)
        self._live.set()
        await asyncio.sleep(LIVE_S)
        is_on = await progress.is_visible()
        self.figures.live_steps = (await progress.inner_text()) if is_on else "over before the interactions were"
        self._live.clear()
        await first.context.close()
        await second.context.close()

    async def _begin_live(self, browser: Browser) -> tuple[Page, float]:
        """A browser whose run is going on, and the seconds until it showed the player."""
        page, seconds = await self._open_page(browser)
        await page.get_by_role("button", name="Run it live").click()
        await expect(page.get_by_text(RUNNING)).to_be_visible(timeout=90_000)
        return page, seconds

    async def _open_page(self, browser: Browser) -> tuple[Page, float]:
        """A browser on the whole page, and the seconds until it showed the player."""
        page = await (await browser.new_context()).new_page()
        began = time.perf_counter()
        await page.goto(self._server.url)
        await expect(page.locator("canvas:visible").first).to_be_visible(timeout=60_000)
        seconds = time.perf_counter() - began
        await expect(page.get_by_role("button", name="Run it live")).to_be_visible(timeout=60_000)
        return page, seconds

    def _cpu_s(self) -> float:
        times = self._process.cpu_times()
        return float(times.user + times.system)

    def _size(self) -> Size:
        """The server's own process, without the model's."""
        return Size(self._process.memory_info().rss / 1e6, self._process.num_threads())


def yield_to_the_server(browser: str) -> None:
    """The browsers draw on what the server leaves them: in a room each has a machine of its own.

    Linux may schedule by sessions first (`autogroup`), and a browser has one of its own: then it is this that yields.
    """
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):
            if browser.split("-")[0] in process.name():
                process.nice(LOWEST)
                Path(f"/proc/{process.pid}/autogroup").write_text(str(LOWEST))


async def main() -> int:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    options = ("--server.disconnectedSessionTTL", str(SESSION_KEPT_S))
    with app_server(options) as server:
        async with async_playwright() as playwright:
            browser = None
            if path is not None and Path(path).exists():
                browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
                yield_to_the_server(Path(path).name)
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
