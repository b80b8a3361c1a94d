"""A viewer without a browser: speaks Streamlit's own websocket protocol, and waits for the script as a browser would.

Owns: Viewer: opening a session, the player's word that it is painted, interactions. Must not know: figures, processes.
It keeps no cache of messages, so the server sends it more than a browser would need.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

AGENT = "Mozilla/5.0 (batchviz load)"  # with one the page waits for the player to be painted, as for any browser
PATIENCE_S = 60.0
PLAYER, SLOTS = ("bidi_component", "-player"), ("number_input", "-slots")  # the kind, and how the id ends


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
        self._widgets: set[tuple[str, str]] = set()  # kind and id
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

    def _ids(self, wanted: tuple[str, str]) -> list[str]:
        return [widget for kind, widget in self._widgets if kind == wanted[0] and widget.endswith(wanted[1])]

    def _put(self, widget: str) -> WidgetState:
        return self._values.setdefault(widget, WidgetState(id=widget))

    async def _run(self) -> float:
        """Asks for a run of the script, and waits until it, or the run that took its place, is through."""
        assert self._socket is not None
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.context_info.url = self._url
        message.rerun_script.widget_states.widgets.extend(self._values.values())
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
            elif message.WhichOneof("type") == "script_finished":
                finished = ForwardMsg.ScriptFinishedStatus.Name(message.script_finished)
                if finished == "FINISHED_SUCCESSFULLY":
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
        widget = getattr(getattr(element, kind, None), "id", "")
        if widget:
            self._widgets.add((kind, widget))
        return None
