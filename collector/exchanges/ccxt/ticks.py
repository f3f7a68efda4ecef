"""Prices of an exchange through ccxt's websockets."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.addresses import moved
from collector.exchanges.ccxt.errors import sorted_error
from collector.exchanges.ccxt.stream_gate import streaming
from collector.exchanges.ccxt.subscriptions import bar_method, chunks, price_method
from collector.exchanges.handshake import announced
from collector.exchanges.port import Call
from collector.exchanges.ticks import PriceTick, SeenClosed, SourceCounts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from collector.exchanges.ccxt.request_hook import Desk
    from collector.exchanges.ccxt.subscriptions import WatchMethod
    from collector.exchanges.ticks import StreamEvent, TickRequest

ENDPOINT = "stream"
MOST_WAITING = 50_000
"""Events that wait for their reader; then the oldest are dropped and counted."""


def opened(exchange_id: str, desk: Desk, markets: list[Any]) -> Any:
    """ccxt's instance for websockets, which knows these markets. Connects to nothing yet."""
    ccxt = streaming(exchange_id)({"newUpdates": True, "enableRateLimit": True})
    ccxt.desk = desk
    if desk.address is not None:
        ccxt.urls["api"] = moved(ccxt.urls["api"], desk.address)
        ccxt.timeout_on_exit = 0  # ccxt's pause is for TLS connections to end
    ccxt.set_markets(markets)
    return ccxt


class CcxtTicks:
    """All subscriptions of one exchange. The first that fails ends the source."""

    def __init__(
        self, exchange_id: str, desk: Desk, markets: Mapping[str, Any], wanted: TickRequest
    ) -> None:
        self._id = exchange_id
        self._desk = desk
        self._wanted = wanted
        names = {*wanted.symbols, *(symbol for symbol, _ in wanted.bars)}
        self._markets = [markets[name] for name in sorted(names)]
        self._ccxt: Any = None
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: deque[StreamEvent] = deque()
        self._arrived = asyncio.Event()
        self._error: Exception | None = None
        self._opens: dict[tuple[str, str], int] = {}
        self.counts = SourceCounts()

    async def connect(self) -> None:
        """Begins every subscription. The connections themselves are opened by ccxt."""
        # Importing an exchange takes a moment, too long to hold up what else the process does.
        self._ccxt = await asyncio.to_thread(opened, self._id, self._desk, self._markets)
        prices = price_method(self._id, self._ccxt.has)
        for chunk in chunks(self._id, self._wanted.symbols, prices):
            await self._begin(self._watch_prices(prices, chunk), chunk[0])
        bars = bar_method(self._ccxt.has) if self._wanted.bars else None
        if bars is not None:
            for series in self._bar_chunks(bars):
                await self._begin(self._watch_bars(bars, series), series[0][0])

    async def __aiter__(self) -> AsyncIterator[StreamEvent]:
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._error is not None:
                raise self._error
            self._arrived.clear()
            await self._arrived.wait()

    async def close(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._error is None:
            self._fail(ExchangeUnavailable(f"{self._id}: the stream was closed"))
        if self._ccxt is not None:
            await self._ccxt.close()

    async def _begin(self, watching: Awaitable[None], name: str) -> None:
        permit, clock = self._desk.outcomes.permit, self._desk.clock
        try:
            await announced(permit, Call(self._id, ENDPOINT), clock)
        except BaseException:
            watching.close()  # type: ignore[attr-defined]  # Never begun.
            raise
        task = asyncio.ensure_future(self._guarded(watching))
        task.set_name(f"ticks:{self._id}:{name}")
        self._tasks.append(task)

    async def _guarded(self, watching: Awaitable[None]) -> None:
        try:
            await watching
        except Exception as error:  # noqa: BLE001 - whatever ccxt raises ends the source
            self._fail(sorted_error(error, self._desk.quirks, None, self._desk.clock))

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._arrived.set()

    async def _watch_prices(self, method: WatchMethod, symbols: Sequence[str]) -> None:
        watch = getattr(self._ccxt, method.name)
        asked = list(symbols) if method.takes_many else symbols[0]
        read = self._of_trades if method.gives_trades else self._of_tickers
        while True:
            self._put(read(await watch(asked)))

    async def _watch_bars(self, method: WatchMethod, series: Sequence[tuple[str, str]]) -> None:
        watch: Callable[..., Awaitable[Any]] = getattr(self._ccxt, method.name)
        [(symbol, timeframe), *_] = series
        while True:
            if method.takes_many:
                seen = await watch([list(each) for each in series])
                found = [(s, tf, rows) for s, frames in seen.items() for tf, rows in frames.items()]
            else:
                found = [(symbol, timeframe, await watch(symbol, timeframe))]
            self._put(each for one in found for each in self._closed(*one))

    def _bar_chunks(self, method: WatchMethod) -> list[list[tuple[str, str]]]:
        size = len(chunks(self._id, [s for s, _ in self._wanted.bars], method)[0])
        bars = list(self._wanted.bars)
        return [bars[at : at + size] for at in range(0, len(bars), size)]

    def _put(self, events: Iterable[StreamEvent]) -> None:
        self._waiting.extend(events)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popleft()
            self.counts.dropped += 1
        self._arrived.set()

    def _of_tickers(self, seen: Any) -> list[StreamEvent]:
        # One ticker is a ticker itself, several come by symbol.
        tickers = [seen] if "bid" in seen else list(seen.values())
        return self._ticks((each, each.get("bid"), each.get("ask"), "last") for each in tickers)

    def _of_trades(self, seen: Any) -> list[StreamEvent]:
        return self._ticks((each, None, None, "price") for each in seen)

    def _ticks(self, found: Iterable[tuple[Any, Any, Any, str]]) -> list[StreamEvent]:
        now = self._desk.clock.wall_ms() / 1000
        ticks: list[StreamEvent] = []
        for each, bid, ask, instead in found:
            price = each.get(instead)
            bid, ask = (price if side is None else side for side in (bid, ask))
            if bid is None or ask is None:
                self.counts.errors += 1
                continue
            at = (each.get("timestamp") or 0) / 1000 or now
            ticks.append(PriceTick(each["symbol"], float(bid), float(ask), at, now))
        return ticks

    def _closed(self, symbol: str, timeframe: str, rows: Sequence[Any]) -> list[StreamEvent]:
        """A bar has closed when the next one appears: ccxt reports it in no other way."""
        if not rows:
            return []
        newest = int(rows[-1][0])
        known = self._opens.get((symbol, timeframe))
        self._opens[symbol, timeframe] = newest if known is None else max(known, newest)
        if known is None or newest <= known:
            return []
        return [SeenClosed(symbol, timeframe, known)]
