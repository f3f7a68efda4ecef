"""The exchange's websockets: `/ws` sends messages as they are, `/stream` with their stream's name.

Both take streams in the address and, like Binance, SUBSCRIBE and UNSUBSCRIBE at any time. A client
that does not read in time loses what is older than a moment; how much is counted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import WSMsgType, web

from collector.simulated.faults.socket import SOCKET, SocketDisconnect, SocketSilence
from collector.simulated.request import PublicRequest
from collector.simulated.resetting import reset
from collector.simulated.stream_messages import subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.simulated.faults.book import FaultBook
    from collector.simulated.stream_messages import StreamMessages
    from collector.simulated.venue import SimulatedVenue

TICKS_PER_SECOND = 4.0
MOST_STREAMS = 1024
_STEP_SECONDS = 0.05
_MOST_BEHIND_SECONDS = 1.0


@dataclass(slots=True)
class SocketCounts:
    """Since the start. Of all book tickers that were due, each was sent or dropped."""

    opened: int = 0
    live: int = 0
    sent: int = 0
    dropped: int = 0

    def listing(self) -> dict[str, int]:
        return {
            "opened": self.opened,
            "live": self.live,
            "sent": self.sent,
            "dropped": self.dropped,
        }


class Sockets:
    """Every open websocket of a running exchange."""

    def __init__(
        self,
        venue: SimulatedVenue,
        faults: FaultBook,
        now_ms: Callable[[], int],
        closing: asyncio.Event,
        ticks_per_second: float = TICKS_PER_SECOND,
    ) -> None:
        self._venue = venue
        self._faults = faults
        self._now_ms = now_ms
        self._closing = closing
        self._rate = ticks_per_second
        self._rounds = count(1)
        self.counts = SocketCounts()

    @staticmethod
    def is_meant(path: str) -> bool:
        return path in ("/ws", "/stream") or path.startswith("/ws/")

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one client until either side ends it."""
        response = web.WebSocketResponse(compress=False)
        if not response.can_prepare(request).ok:
            return web.Response(status=426, text="a websocket is expected here")
        await response.prepare(request)
        self.counts.opened += 1
        self.counts.live += 1
        client = _Client(self, request, response)
        client.subscribe(_named(request))
        pumping = asyncio.create_task(client.pump(), name="simulated:socket")
        try:
            await client.listen()
        finally:
            self.counts.live -= 1
            pumping.cancel()
            await asyncio.gather(pumping, return_exceptions=True)
        return response

    def opened(self, name: str) -> StreamMessages | None:
        return subscription(name, self._venue.truth, self._now_ms())

    def struck(self) -> tuple[bool, bool]:
        """Whether this round is silent, and whether it ends the connection."""
        ask = PublicRequest(number=next(self._rounds), endpoint=SOCKET, now_ms=self._now_ms())
        faults = [fault for fault, _ in self._faults.disturb(ask)]
        silent = any(isinstance(fault, SocketSilence) for fault in faults)
        return silent, any(isinstance(fault, SocketDisconnect) for fault in faults)

    async def round(self, client: _Client, due: int) -> None:
        """Sends what is new on every stream of one client."""
        view, now_ms = self._venue.view(), self._now_ms()
        for name, stream in client.streams():
            for message in stream.messages(view, now_ms, due):
                await client.send(name, message)
                self.counts.sent += 1

    @property
    def closing(self) -> asyncio.Event:
        return self._closing

    @property
    def rate(self) -> float:
        return self._rate


class _Client:
    """One connection and its subscriptions."""

    def __init__(
        self, sockets: Sockets, request: web.BaseRequest, response: web.WebSocketResponse
    ) -> None:
        self._sockets = sockets
        self._request = request
        self._response = response
        self._streams: dict[str, StreamMessages] = {}
        self._is_combined = request.path == "/stream"

    def streams(self) -> list[tuple[str, StreamMessages]]:
        return list(self._streams.items())

    def subscribe(self, names: Iterable[str]) -> None:
        for name in names:
            stream = self._sockets.opened(name)
            if stream is not None and len(self._streams) < MOST_STREAMS:
                self._streams.setdefault(name, stream)

    async def send(self, name: str, message: bytes) -> None:
        if self._is_combined:
            message = b'{"stream":"%s","data":%s}' % (name.encode(), message)
        await self._response.send_frame(message, WSMsgType.TEXT)

    async def listen(self) -> None:
        """Answers requests until the client or the exchange ends the connection."""
        closing = asyncio.create_task(self._sockets.closing.wait())
        try:
            while not self._response.closed:
                receiving = asyncio.ensure_future(self._response.receive())
                await asyncio.wait({receiving, closing}, return_when=asyncio.FIRST_COMPLETED)
                if not receiving.done():
                    receiving.cancel()
                    await asyncio.gather(receiving, return_exceptions=True)
                    return reset(self._request)
                message = receiving.result()
                if message.type is WSMsgType.TEXT:
                    await self._answer(orjson.loads(message.data))
        finally:
            closing.cancel()
        return None

    async def pump(self) -> None:
        """Sends at the exchange's rate. What is too far behind is dropped, not sent late."""
        loop, rate = asyncio.get_running_loop(), self._sockets.rate
        step = min(max(_STEP_SECONDS, 1 / rate), 1.0) if rate else 1.0
        began, done = loop.time(), 0
        while True:
            await asyncio.sleep(step)
            due = int((loop.time() - began) * rate) - done
            done += due
            silent, ends = self._sockets.struck()
            if ends:
                return reset(self._request)
            if silent:
                continue
            fresh = min(due, max(1, int(_MOST_BEHIND_SECONDS * rate)))
            self._sockets.counts.dropped += (due - fresh) * len(self._streams)
            await self._sockets.round(self, fresh)

    async def _answer(self, asked: Any) -> None:
        names = [str(name) for name in asked.get("params") or ()]
        result: Any = None
        if asked.get("method") == "SUBSCRIBE":
            self.subscribe(names)
        elif asked.get("method") == "UNSUBSCRIBE":
            for name in names:
                self._streams.pop(name, None)
        else:
            result = list(self._streams)
        await self._response.send_str(
            orjson.dumps({"result": result, "id": asked.get("id")}).decode()
        )


def _named(request: web.BaseRequest) -> list[str]:
    """The streams in an address: `/stream?streams=a/b` or `/ws/a/b`."""
    if request.path == "/stream":
        return [name for name in request.query.get("streams", "").split("/") if name]
    return [name for name in request.path.removeprefix("/ws").split("/") if "@" in name]
