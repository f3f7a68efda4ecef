"""ccxt's websockets behind the port, on a local exchange that speaks Binance's streams."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.errors import BadRequest, ConfigError, ExchangeUnavailable, RateLimited
from collector.exchanges.ccxt.catalog import streaming_ids
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.ccxt.ticks import (
    CcxtTicks,
    bar_method,
    chunks,
    opened,
    price_method,
    streaming,
)
from collector.exchanges.ticks import (
    PriceTick,
    SeenClosed,
    StreamingExchange,
    TickRequest,
    ticks_of,
)
from collector.simulated.faults.socket import SocketDisconnect
from collector.simulated.server import SimulatedExchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.exchanges.ticks import TickSource

SYMBOLS = ("BTC/USDT", "ETH/USDT")


class EveryPermit:
    """Lets everything out."""

    async def before(self, call: Any) -> float:
        return float("inf")

    async def after(self, answer: Any) -> None:
        pass


@pytest.fixture
async def venue() -> AsyncIterator[SimulatedExchange]:
    async with SimulatedExchange(ticks_per_second=20) as venue:
        yield venue


@asynccontextmanager
async def binance(venue: SimulatedExchange, permit: Any = None) -> AsyncIterator[CcxtExchange]:
    exchange = CcxtExchange(
        "binance", permit or EveryPermit(), clock=SystemClock(), urls={"binance": venue.url}
    )
    try:
        await exchange.load_markets()
        yield exchange
    finally:
        await exchange.close()


async def first(source: TickSource, count: int) -> list[Any]:
    found: list[Any] = []
    async with asyncio.timeout(120):
        async for event in source:
            found.append(event)
            if len(found) >= count:
                break
    return found


async def test_prices_of_every_symbol_arrive(venue: SimulatedExchange) -> None:
    async with binance(venue) as exchange:
        assert isinstance(exchange, StreamingExchange)
        source = ticks_of(exchange, TickRequest(SYMBOLS))
        try:
            await source.connect()
            ticks = await first(source, 20)
        finally:
            await source.close()
    assert {tick.symbol for tick in ticks} == set(SYMBOLS)
    for tick in ticks:
        assert isinstance(tick, PriceTick)
        assert 0 < tick.bid < tick.ask
        assert abs(tick.at - tick.received) < 5


async def test_a_broken_connection_ends_the_source(venue: SimulatedExchange) -> None:
    async with binance(venue) as exchange:
        source = ticks_of(exchange, TickRequest(SYMBOLS))
        try:
            await source.connect()
            await first(source, 2)
            venue.faults.add(SocketDisconnect(count=1))
            with pytest.raises(ExchangeUnavailable):
                await first(source, 10**6)
        finally:
            await source.close()


async def test_a_bar_is_seen_closed_when_the_next_one_shows_up(venue: SimulatedExchange) -> None:
    async with binance(venue) as exchange:
        source = ticks_of(exchange, TickRequest((), (("BTC/USDT", "1m"),)))
        try:
            await source.connect()
            reading = asyncio.create_task(first(source, 1))
            opened = venue.now_ms() // 60_000 * 60_000
            async with asyncio.timeout(120):
                while not venue.sockets.counts.sent:
                    await asyncio.sleep(0.01)
            venue.offset_ms += 60_000
            [event] = await reading
        finally:
            await source.close()
    assert isinstance(event, SeenClosed)
    assert (event.symbol, event.timeframe) == ("BTC/USDT", "1m")
    assert event.open_ms in (opened, opened + 60_000)


async def test_a_connection_buys_a_token(venue: SimulatedExchange) -> None:
    class Refusing(EveryPermit):
        async def before(self, call: Any) -> float:
            if call.endpoint == "stream":
                raise RateLimited("binance", 100, "paused")
            return await super().before(call)

    async with binance(venue, Refusing()) as exchange:
        source = ticks_of(exchange, TickRequest(SYMBOLS))
        try:
            await source.connect()
            with pytest.raises(RateLimited):
                await first(source, 1)
        finally:
            await source.close()
    assert venue.sockets.counts.opened == 0


async def test_no_websocket_leaves_the_address_that_was_set(venue: SimulatedExchange) -> None:
    async with binance(venue) as exchange:
        source = ticks_of(exchange, TickRequest(SYMBOLS))
        assert isinstance(source, CcxtTicks)
        sockets = opened("binance", source, list(exchange._ccxt.markets.values()))
        with pytest.raises(ConfigError, match=r"stream\.binance\.com"):
            sockets.client("wss://stream.binance.com:9443/ws")
        await sockets.close()


async def test_an_unknown_symbol_is_refused_before_anything_is_opened(
    venue: SimulatedExchange,
) -> None:
    async with binance(venue) as exchange:
        with pytest.raises(BadRequest, match="NO/SUCH"):
            ticks_of(exchange, TickRequest(("NO/SUCH",)))


def test_the_best_method_there_is_gives_the_prices() -> None:
    assert price_method("x", {"watchBidsAsks": True, "watchTickers": True}).name == (
        "watch_bids_asks"
    )
    assert price_method("x", {"watchTickers": True, "watchTrades": True}).name == "watch_tickers"
    trades = price_method("x", {"watchTickers": False, "watchTrades": True})
    assert (trades.name, trades.gives_trades) == ("watch_trades", True)
    with pytest.raises(BadRequest):
        price_method("x", {"watchTrades": None})
    assert bar_method({"watchOHLCV": False}) is None


def test_a_subscription_names_no_more_symbols_than_the_venue_allows() -> None:
    symbols = [f"S{number}/USDT" for number in range(25)]
    many = price_method("bybit", {"watchTickers": True})
    assert [len(chunk) for chunk in chunks("bybit", symbols, many)] == [10, 10, 5]
    assert [len(chunk) for chunk in chunks("okx", symbols, many)] == [25]
    one = price_method("okx", {"watchTicker": True})
    assert len(chunks("okx", symbols, one)) == 25


def test_every_exchange_with_websockets_has_a_way_to_send_prices() -> None:
    ways = Counter(price_method(name, streaming(name)({}).has).name for name in streaming_ids())
    assert sum(ways.values()) == len(streaming_ids())
    assert ways["watch_bids_asks"] > 20
    with pytest.raises(BadRequest, match="sends no live prices"):
        streaming("simulated")
