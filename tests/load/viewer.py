"""A viewer without a browser: speaks Streamlit's own websocket protocol, and waits for the script as a browser would.

Owns: Viewer: opening a session, the player's word that it is painted, interactions. Must not know: figures, processes.
Each interaction is known to have done what it was for. It keeps no cache of messages, so the server sends it more than a
browser would need.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from types import TracebackType
from typing import Any, Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

AGENT = "Mozilla/5.0 (batchviz load)"  # with one the page waits for the player to be painted, as for any browser
PATIENCE_S = 60.0
PLAYER, LESSON = ("bidi_component", "-player"), ("bidi_component", "-lesson_view")  # the kind, and how the id ends
SLOTS, CHART, RUN_LIVE = ("number_input", "-slots"), ("button_group", "-chart"), ("button", "-run_live")
DRAWN_CHART = "vega_lite_chart"
WHOLE, FRAGMENT = "FINISHED_SUCCESSFULLY", "FINISHED_FRAGMENT_RUN_SUCCESSFULLY"


class SessionFailedError(RuntimeError):
    """The session did not give a whole page. The message is one sentence."""


class Viewer:
    """One session. Use as an asynchronous context manager."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._socket: ClientConnection | None = None
        self._drain: asyncio.Task[None] | None = None
        self._finished: asyncio.Queue[str | None] = asyncio.Queue()
        self._values: dict[str, WidgetState] = {}
        self._query = ""
        self._page = ""
        self._widgets: dict[tuple[str, str], str] = {}  # kind and id -> the fragment that it is in, "" if in none
        self._poll: tuple[str, float] | None = (
            None  # the fragment that is to be drawn again, and every how many seconds
        )
        self._drawn: Counter[str] = Counter()  # kinds of elements since the last request
        self.num_bytes = 0

    async def __aenter__(self) -> Self:
        self._socket = await connect(
            self._url.replace("http", "ws", 1) + "/_stcore/stream",
            subprotocols=["streamlit", "PLACEHOLDER_AUTH_TOKEN"],  # type: ignore[list-item]
            origin=self._url,  # type: ignore[arg-type]
            max_size=None,
            user_agent_header=AGENT,
        )
        self._drain = asyncio.create_task(self._listen(self._socket))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._socket is not None
        assert self._drain is not None
        await self._socket.close()
        await self._drain

    async def open(self) -> float:
        """Seconds until the script has drawn the player."""
        took = await self._run()
        if not self._ids(PLAYER):
            raise SessionFailedError("the page has no player")
        return took

    async def say_painted(self) -> float:
        """Seconds until the script, told that the player is seen, has drawn everything."""
        self._put(self._ids(PLAYER)[0]).json_value = '{"painted":true}'
        took = await self._run()
        if not self._ids(SLOTS):
            raise SessionFailedError("the page has no knobs")
        return took

    async def rest_at(self, step: int) -> float:
        """Seconds until the charts show where the player came to rest: the end of a seek, a step, a pause."""
        self._put(self._ids(PLAYER)[0]).json_value = json.dumps({"painted": True, "step": step})
        return await self._draw_chart(PLAYER)

    async def choose_chart(self, label: str) -> float:
        """Seconds until another chart is drawn."""
        self._put(self._ids(CHART)[0]).string_array_value.data[:] = [label]
        return await self._draw_chart(CHART)

    async def _draw_chart(self, of: tuple[str, str]) -> float:
        kind_and_id = (of[0], self._ids(of)[0])
        took = await self._run(self._widgets[kind_and_id])
        if not self._drawn[DRAWN_CHART]:
            raise SessionFailedError("the page drew no chart anew")
        return took

    async def choose_slots(self, number: int) -> float:
        """Seconds until the page shows this many slots."""
        self._put(self._ids(SLOTS)[0]).double_value = float(number)
        took = await self._run()
        if f"continuous-{number}" not in self._query:
            raise SessionFailedError(f"the page does not show {number} slots; its address says {self._query}")
        return took

    async def open_link(self, query: str) -> float:
        """Seconds until the page shows what a link says. The knobs take the link's values."""
        self._values = {id: value for id, value in self._values.items() if id.endswith(PLAYER[1])}
        self._query = query
        return await self._run()

    async def run_live(self) -> float:
        """Seconds until the page says that a live run is queued, or goes on."""
        button = self._put(self._ids(RUN_LIVE)[0])
        button.trigger_value = True
        took = await self._run(forgets=button.id)
        if self._poll is None:
            raise SessionFailedError("the page does not follow a live run")
        return took

    async def watch(self) -> float | None:
        """Waits as long as the page asks, then looks at the live run again: the seconds which that took; None once it is over."""
        if self._poll is None:
            return None
        fragment, interval = self._poll
        await asyncio.sleep(interval)
        return await self._run(fragment)

    async def open_lesson(self, lesson: str) -> float:
        """Seconds until a lesson is drawn, from any page."""
        self._values, self._query, self._page = {}, f"lesson={lesson}", "learn"
        return await self._draw_lesson()

    async def next_lesson(self, lesson: str) -> float:
        """Seconds until the lesson is drawn that a lesson's own list leads to; cards within one ask no server."""
        self._put(self._ids(LESSON)[0]).json_value = json.dumps({"wanted": lesson})
        took = await self._draw_lesson()
        if self._query != f"lesson={lesson}":
            raise SessionFailedError(f"the page does not show the lesson {lesson}; its address says {self._query}")
        return took

    async def _draw_lesson(self) -> float:
        took = await self._run()
        if not self._ids(LESSON) or not self._drawn[LESSON[0]]:
            raise SessionFailedError("the page has no lesson")
        return took

    def _ids(self, wanted: tuple[str, str]) -> list[str]:
        return [widget for kind, widget in self._widgets if kind == wanted[0] and widget.endswith(wanted[1])]

    def _put(self, widget: str) -> WidgetState:
        return self._values.setdefault(widget, WidgetState(id=widget))

    async def _run(self, fragment: str = "", forgets: str = "") -> float:
        """Asks for a run of the script, or of one part of it, and waits until it, or the run that took its place, is through.

        A widget that it `forgets` is a button: pressed once.
        """
        assert self._socket is not None
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_name = self._page
        message.rerun_script.fragment_id = fragment
        message.rerun_script.context_info.url = self._url
        message.rerun_script.widget_states.widgets.extend(self._values.values())
        self._values.pop(forgets, None)
        self._drawn.clear()
        if not fragment:
            self._poll = None  # a whole run says anew whether there is one
        began = time.perf_counter()
        await self._socket.send(message.SerializeToString())
        problem = await asyncio.wait_for(self._finished.get(), PATIENCE_S)
        if problem is not None:
            raise SessionFailedError(problem)
        return time.perf_counter() - began

    async def _listen(self, socket: ClientConnection) -> None:
        problem = None
        async for data in socket:
            self.num_bytes += len(data)
            message = ForwardMsg.FromString(bytes(data) if not isinstance(data, str) else data.encode())
            if message.WhichOneof("type") == "delta":
                problem = self._take(message) or problem
            elif message.WhichOneof("type") == "page_info_changed":
                self._query = message.page_info_changed.query_string  # the address bar: a browser says it from now on
            elif message.WhichOneof("type") == "auto_rerun":
                self._poll = (message.auto_rerun.fragment_id, message.auto_rerun.interval)
            elif message.WhichOneof("type") == "stop_auto_rerun":
                self._poll = None
            elif message.WhichOneof("type") == "script_finished":
                finished = ForwardMsg.ScriptFinishedStatus.Name(message.script_finished)
                if finished in (WHOLE, FRAGMENT):
                    self._finished.put_nowait(problem)
                    problem = None
                elif finished != "FINISHED_EARLY_FOR_RERUN":
                    self._finished.put_nowait(finished)
        self._finished.put_nowait("the server closed the connection")

    def _take(self, message: ForwardMsg) -> str | None:
        """Remembers a widget; an exception on the page is a problem."""
        if message.delta.WhichOneof("type") != "new_element":
            return None
        element = message.delta.new_element
        kind = element.WhichOneof("type") or ""
        if kind == "exception":
            return f"the page shows an exception: {element.exception.type}"
        self._drawn[kind] += 1
        found = getattr(element, kind, None)
        if getattr(found, "id", ""):
            self._widgets[kind, found.id] = message.delta.fragment_id
            if getattr(found, "set_value", False):
                self._obey(kind, found)
        return None

    def _obey(self, kind: str, found: Any) -> None:
        """What the page sets a widget to, a browser says of it from then on."""
        if kind == "selectbox":
            self._put(found.id).string_value = found.raw_value
        elif kind == "number_input":
            self._put(found.id).double_value = found.value
        elif kind == "button_group":
            self._put(found.id).string_array_value.data[:] = found.raw_values
