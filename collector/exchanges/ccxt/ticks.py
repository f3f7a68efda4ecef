"""Prices of an exchange through ccxt's websockets: no request without a token, no other host.

`streaming(exchange_id)` is ccxt's own class of an exchange with websockets, with `StreamGate` in
front of it. Every connection it opens is a `StreamClient`, which buys a token for the handshake,
counts what ccxt cannot read, and shares the event loop.

Of the methods for prices the best there is comes first: best offers, then tickers, then trades,
whose price stands for both sides. What a method returns may be older than what has arrived since,
because ccxt hands out one message and keeps the following ones in its cache. So best offers and
tickers are read from that cache after each message.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType
from ccxt.async_support.base.exchange import BaseExchange
from ccxt.async_support.base.ws.client import Client
from ccxt.base.errors import NetworkError
from yarl import URL

from collector import logs
from collector.errors import BadRequest, CollectorError, ConfigError, ExchangeUnavailable
from collector.exchanges.ccxt.addresses import moved
from collector.exchanges.ccxt.catalog import streaming_class, streaming_ids
from collector.exchanges.ccxt.errors import sorted_error
from collector.exchanges.ccxt.handshake import open_websocket, with_token
from collector.exchanges.ticks import PriceTick, SeenClosed, SourceCounts, Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from collector.exchanges.ccxt.request_hook import Desk
    from collector.exchanges.ticks import StreamEvent, TickRequest

LARGEST_MESSAGE = 10 * 1024 * 1024
"""Of a message that the venue has compressed, in bytes afterwards. ccxt's limit for all others."""
SYMBOLS_AT_ONCE = 100
OF_A_VENUE: Mapping[str, int] = MappingProxyType({"bybit": 10, "binance": 200, "kucoin": 100})
"""Where a venue limits what one subscription may name, by its own documentation."""
LOOK_AGAIN_SECONDS = 1.0
"""How often a subscription whose prices come from the cache is asked for: only for its errors."""

_log = logs.get("collector.streams")


def opened(exchange_id: str, source: CcxtTicks, markets: list[Any]) -> Any:
    """ccxt's instance for websockets, which knows these markets. Connects to nothing yet."""
    ccxt = streaming(exchange_id)({"newUpdates": True, "enableRateLimit": True})
    ccxt.source, desk = source, source.desk
    # Some exchanges keep their best offers among the tickers.
    ccxt.bidsasks = ccxt.tickers = source.prices
    if desk.address is not None:
        ccxt.urls["api"] = moved(ccxt.urls["api"], desk.address)
        ccxt.timeout_on_exit = 0  # ccxt's pause is for TLS connections to end
    ccxt.set_markets(markets)
    return ccxt


class PriceCache(dict[str, Any]):
    """ccxt's cache of tickers by symbol, which also remembers those that have changed."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: set[str] = set()

    def __setitem__(self, symbol: str, ticker: Any) -> None:
        super().__setitem__(symbol, ticker)
        self._changed.add(symbol)

    def take_changed(self) -> list[Any]:
        """The tickers that have changed since the last call."""
        changed, self._changed = self._changed, set()
        return [self[symbol] for symbol in changed]


class CcxtTicks:
    """All subscriptions of one exchange. The first that fails ends the source."""

    def __init__(
        self, exchange_id: str, desk: Desk, markets: Mapping[str, Any], wanted: TickRequest
    ) -> None:
        self._id = exchange_id
        self.desk = desk
        self._wanted = wanted
        self._symbols = frozenset(wanted.symbols)
        names = {*self._symbols, *(symbol for symbol, _ in wanted.bars)}
        self._markets = [markets[name] for name in sorted(names)]
        self._ccxt: Any = None
        self._tasks: list[asyncio.Task[None]] = []
        self._waiting: deque[StreamEvent] = deque()
        self._arrived = asyncio.Event()
        self._error: Exception | None = None
        self._opens: dict[tuple[str, str], int] = {}
        self._has_misread = False
        self.prices = PriceCache()
        self.counts = SourceCounts()

    async def connect(self) -> None:
        """Begins every subscription. ccxt opens the connections; what fails ends the source."""
        # Importing an exchange takes a moment, too long to hold up what else the process does.
        self._ccxt = await asyncio.to_thread(opened, self._id, self, self._markets)
        prices = price_method(self._id, self._ccxt.has)
        for chunk in chunks(self._id, self._wanted.symbols, prices):
            self._begin(self._watch_prices(prices, chunk), chunk[0])
        bars = bar_method(self._ccxt.has) if self._wanted.bars else None
        if bars is not None:
            for series in self._bar_chunks(bars):
                self._begin(self._watch_bars(bars, series), series[0][0])

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
        self._waiting.clear()
        self.fail(ExchangeUnavailable(f"{self._id}: the stream was closed"))
        if self._ccxt is not None:
            await self._ccxt.close()

    def hear(self) -> None:
        """Takes what the last message has changed."""
        changed = self.prices.take_changed()
        if changed:
            self._put(self._of_tickers(changed))

    def misread(self, error: Exception) -> None:
        """Counts a message that ccxt could not read."""
        if not self._has_misread:
            self._has_misread = True
            reason = f"{type(error).__name__}: {error}"
            _log.warning("stream_unreadable", exchange=self._id, error=reason)
        self.counts.errors += 1

    def fail(self, error: Exception) -> None:
        """Ends the source. ccxt wraps the error of a handshake into one of its own."""
        inner = error.args[0] if error.args else None
        error = inner if isinstance(inner, CollectorError) else error
        self._error = self._error or sorted_error(error, self.desk.quirks, None, self.desk.clock)
        self._arrived.set()

    def _begin(self, watching: Awaitable[None], name: str) -> None:
        task = asyncio.ensure_future(self._guarded(watching))
        task.set_name(f"ticks:{self._id}:{name}")
        self._tasks.append(task)

    async def _guarded(self, watching: Awaitable[None]) -> None:
        try:
            await watching
        except Exception as error:  # noqa: BLE001 - whatever ccxt raises ends the source
            self.fail(error)

    async def _watch_prices(self, method: WatchMethod, symbols: Sequence[str]) -> None:
        watch = getattr(self._ccxt, method.name)
        asked = list(symbols) if method.takes_many else symbols[0]
        while True:
            result = await watch(asked)
            if method.gives_trades:
                self._put(self._of_trades(result))
            else:
                await asyncio.sleep(LOOK_AGAIN_SECONDS)

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
        self._arrived.set()

    def _of_tickers(self, tickers: Iterable[Any]) -> list[StreamEvent]:
        wanted = (each for each in tickers if each["symbol"] in self._symbols)
        return self._ticks((each, each.get("bid"), each.get("ask"), "last") for each in wanted)

    def _of_trades(self, trades: Iterable[Any]) -> list[StreamEvent]:
        return self._ticks((each, None, None, "price") for each in trades)

    def _ticks(self, found: Iterable[tuple[Any, Any, Any, str]]) -> list[StreamEvent]:
        now = self.desk.clock.wall_ms() / 1000
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


@dataclass(frozen=True, slots=True)
class WatchMethod:
    """A method of ccxt's. `takes_many`: it takes a list of symbols, else one."""

    name: str
    takes_many: bool
    gives_trades: bool = False


_PRICES = (
    ("watchBidsAsks", WatchMethod("watch_bids_asks", takes_many=True)),
    ("watchTickers", WatchMethod("watch_tickers", takes_many=True)),
    ("watchTicker", WatchMethod("watch_ticker", takes_many=False)),
    (
        "watchTradesForSymbols",
        WatchMethod("watch_trades_for_symbols", takes_many=True, gives_trades=True),
    ),
    ("watchTrades", WatchMethod("watch_trades", takes_many=False, gives_trades=True)),
)
_BARS = (
    ("watchOHLCVForSymbols", WatchMethod("watch_ohlcv_for_symbols", takes_many=True)),
    ("watchOHLCV", WatchMethod("watch_ohlcv", takes_many=False)),
)


def price_method(exchange_id: str, has: Mapping[str, object]) -> WatchMethod:
    """The method for prices. BadRequest when the exchange has none."""
    found = next((method for name, method in _PRICES if has.get(name) is True), None)
    if found is None:
        raise BadRequest(f"{exchange_id} sends no live prices")
    return found


def bar_method(has: Mapping[str, object]) -> WatchMethod | None:
    """The method for running bars, None when the exchange sends none."""
    return next((method for name, method in _BARS if has.get(name) is True), None)


def chunks(exchange_id: str, symbols: Sequence[str], method: WatchMethod) -> list[list[str]]:
    """The symbols as one call of the method may name them."""
    size = OF_A_VENUE.get(exchange_id, SYMBOLS_AT_ONCE) if method.takes_many else 1
    return [list(symbols[at : at + size]) for at in range(0, len(symbols), size)]


class StreamClient(Client):  # type: ignore[misc] # ccxt has no types
    """A connection of ccxt's, opened with a token and read in turns.

    It replaces ccxt's loop over messages. That one handles everything that has arrived before
    anything else runs, and it ends with the first message that ccxt cannot read.
    """

    source: CcxtTicks
    connectionTimeout = 3_600_000  # noqa: N815 - ccxt's would count the wait for the token, too
    _task: asyncio.Task[None] | None = None

    async def open(self, session: Any, backoff_delay: Any = 0) -> None:
        self._task = asyncio.current_task()
        await super().open(session, backoff_delay)

    async def create_connection(self, session: Any) -> Any:
        return await open_websocket(self.source.desk, partial(super().create_connection, session))

    def receive_loop(self) -> None:
        self._task = asyncio.ensure_future(self._receive())

    async def _receive(self) -> None:
        turn = Turn()
        try:
            while not self.closed():
                message = await self.receive()
                self.handle_message(message)
                if message.type in _LAST:
                    break
                await turn.share()
            self.on_close(_ABNORMAL)
        except Exception as error:  # noqa: BLE001 - a connection that cannot be read has ended
            self.on_error(NetworkError(str(error)))

    def handle_message(self, message: Any) -> None:
        try:
            if message.type is WSMsgType.BINARY and (self.gunzip or self.inflate):
                self.handle_text_or_binary_message(unpacked(message.data, gzip=self.gunzip))
            else:
                super().handle_message(message)
            self.source.hear()
        except Exception as error:  # noqa: BLE001 - whatever ccxt raises, it is about this message
            self.source.misread(error)

    def reject(self, result: Any, message_hash: Any = None) -> Any:
        """Every failure passes here, also when ccxt has nobody to tell it to."""
        self.source.fail(result if isinstance(result, Exception) else NetworkError(str(result)))
        return super().reject(result, message_hash)

    async def close(self, code: int = 1000) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await super().close(code)


def unpacked(data: bytes, *, gzip: bool) -> bytes:
    """What the venue has compressed, by gzip or without a header. ccxt unpacks without a bound."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS if gzip else -zlib.MAX_WBITS)
    text = unpacker.decompress(data, LARGEST_MESSAGE)
    if unpacker.unconsumed_tail:
        raise ValueError(f"a message of more than {LARGEST_MESSAGE:,} bytes")
    return text


_LAST = frozenset({WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR})
_ABNORMAL = 1006


class StreamGate(BaseExchange):  # type: ignore[misc] # ccxt has no types
    """Stands before an exchange's own class; see `streaming`."""

    source: CcxtTicks

    async def fetch2(self, path: str, *rest: Any, **more: Any) -> Any:
        """One request with a token, and an error in Collector's words."""
        return await with_token(
            self.source.desk, path, partial(super().fetch2, path, *rest, **more)
        )

    async def throttle(self, cost: Any = None) -> None:
        """Nothing: `fetch2` has bought the token."""

    def client(self, url: str) -> Any:
        """The connection to an address, which has to be the one that was set, if one was."""
        address = self.source.desk.address
        if address is not None:
            allowed, asked = URL(address), URL(url)
            if (asked.host, asked.port) != (allowed.host, allowed.port):
                raise ConfigError(
                    f"{self.id}: a websocket to {asked.host} was stopped, because "
                    f"COLLECTOR_EXCHANGE_URLS sends this exchange's requests to {address}"
                )
        client = super().client(url)
        # ccxt creates its own class here, and offers no way to name another.
        client.__class__, client.source = StreamClient, self.source
        return client


@cache
def streaming(exchange_id: str) -> Any:
    """ccxt's class of an exchange with the gate in front of it. BadRequest when it has no
    websockets."""
    if exchange_id not in streaming_ids():
        raise BadRequest(f"{exchange_id} sends no live prices")
    return type(f"Streaming_{exchange_id}", (StreamGate, streaming_class(exchange_id)), {})
