"""Prices from the simulated exchange's websocket, read without ccxt: a message is a tick.

It reads Binance's combined stream, so that thousands of messages a second cost little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import orjson

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.handshake import open_websocket
from collector.exchanges.ticks import PriceTick, SeenClosed, SourceCounts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from collector.exchanges.ccxt.request_hook import Desk
    from collector.exchanges.ticks import StreamEvent, TickRequest

_PING_SECONDS = 20.0


class SimulatedTicks:
    """One websocket. `venue_ids` are the exchange's names of the symbols."""

    def __init__(
        self, desk: Desk, url: str, wanted: TickRequest, venue_ids: Mapping[str, str]
    ) -> None:
        self._desk = desk
        self._url = "ws" + url.removeprefix("http").rstrip("/") + "/stream"
        self._symbols = {venue_ids[symbol]: symbol for symbol in wanted.symbols}
        self._symbols |= {venue_ids[symbol]: symbol for symbol, _ in wanted.bars}
        self._streams = [f"{venue_ids[symbol].lower()}@bookTicker" for symbol in wanted.symbols]
        self._streams += [
            f"{venue_ids[symbol].lower()}@kline_{timeframe}" for symbol, timeframe in wanted.bars
        ]
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self.counts = SourceCounts()

    async def connect(self) -> None:
        await open_websocket(self._desk, self._connect)

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        assert self._socket is not None
        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise ExchangeUnavailable("simulated: the websocket has ended")
            event = self._read(message.data)
            if event is not None:
                yield event

    async def close(self) -> None:
        session, self._session = self._session, None
        if self._socket is not None:
            await self._socket.close()
        if session is not None:
            await session.close()

    async def _connect(self) -> None:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        self._socket = await self._session.ws_connect(self._url, heartbeat=_PING_SECONDS)
        await self._socket.send_str(
            orjson.dumps({"method": "SUBSCRIBE", "params": self._streams, "id": 1}).decode()
        )

    def _read(self, text: str) -> StreamEvent | None:
        try:
            message = orjson.loads(text)
            data = message.get("data")
            return None if data is None else self._event(data)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.counts.errors += 1
            return None

    def _event(self, data: Mapping[str, Any]) -> StreamEvent | None:
        symbol = self._symbols[data["s"]]
        if data["e"] == "bookTicker":
            bid, ask, at = float(data["b"]), float(data["a"]), data["E"] / 1000
            return PriceTick(symbol, bid, ask, at, self._desk.clock.wall_ms() / 1000)
        bar = data["k"]
        return SeenClosed(symbol, bar["i"], int(bar["t"])) if bar["x"] else None
