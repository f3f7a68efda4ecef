"""The simulated exchange over real HTTP, asked by ccxt's own Binance code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ccxt.async_support as ccxt
import pytest

from collector.clock import ManualClock
from collector.durations import MINUTE_MS
from collector.simulated.ccxt_class import simulated
from collector.simulated.faults.answers import (
    Ban,
    ClockDrift,
    Hang,
    Html,
    Malformed,
    Reset,
    ServerError,
    TooManyRequests,
    Truncated,
)
from collector.simulated.faults.rows import WrongTypes
from collector.simulated.listing import WELL_KNOWN, SimulatedMarket, listings
from collector.simulated.server import SimulatedExchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOW = 1_700_000_059_999  # 19.999 s into a minute.
RUNNING = 1_700_000_040_000
START = RUNNING - 3000 * MINUTE_MS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def exchange(clock: ManualClock) -> AsyncIterator[SimulatedExchange]:
    async with SimulatedExchange(clock=clock) as exchange:
        yield exchange


@pytest.fixture
async def binance(exchange: SimulatedExchange) -> AsyncIterator[Any]:
    """ccxt's Binance, unchanged but for its address."""
    async with client_of(exchange) as client:
        yield client


def client_of(exchange: SimulatedExchange) -> Any:
    client = ccxt.binance({"timeout": 5000, "options": {"fetchMarkets": {"types": ["spot"]}}})
    client.urls["api"]["public"] = f"{exchange.url}/api/v3"
    return quick(client)


def quick(client: Any) -> Any:
    client.timeout_on_exit = 0  # No TLS here that would need time to end.
    client.rateLimit = 1
    client.tokenBucket["refillRate"] = 1.0
    return client


# --- Questions and answers ----------------------------------------------------------------------


async def test_markets_load_in_one_request(exchange: SimulatedExchange, binance: Any) -> None:
    markets = await binance.load_markets()
    assert list(markets) == [listing.symbol for listing in WELL_KNOWN]
    assert markets["BTC/USDT"]["active"]
    assert markets["BTC/USDT"]["precision"]["price"] == 0.01
    assert [entry.path for entry in exchange.journal.since()] == ["/api/v3/exchangeInfo"]


async def test_pages_with_since_are_the_truth(exchange: SimulatedExchange, binance: Any) -> None:
    gathered: list[list[float]] = []
    since = START
    while since < RUNNING - 1:
        page = await binance.fetch_ohlcv("ETH/USDT", "1m", since=since, limit=1000)
        gathered += page
        since = page[-1][0] + 1
    assert gathered[-1][0] == RUNNING
    truth = exchange.truth.bars("ETH/USDT", "1m", START, RUNNING).columns()
    names = ("ts", "open", "high", "low", "close", "volume")
    assert gathered[:-1] == [
        list(row) for row in zip(*(truth[name] for name in names), strict=True)
    ]
    asked = [entry for entry in exchange.journal.since() if entry.symbol == "ETHUSDT"]
    assert [entry.rows for entry in asked] == [1000, 1000, 1000, 1]
    assert {(entry.limit, entry.weight, entry.interval) for entry in asked} == {(1000, 2, "1m")}


@pytest.mark.parametrize("timeframe", ["5m", "15m", "1h", "4h", "1d", "1w"])
async def test_longer_timeframes(exchange: SimulatedExchange, binance: Any, timeframe: str) -> None:
    page = await binance.fetch_ohlcv("SOL/USDT", timeframe, since=START - 10**10, limit=20)
    truth = exchange.truth.bars("SOL/USDT", timeframe, START - 10**10, page[-1][0]).columns()
    closed = [row for row in page if row[0] < page[-1][0]]
    assert [row[0] for row in closed] == truth["ts"].tolist()
    assert [row[5] for row in closed] == truth["volume"].tolist()


async def test_since_zero_gives_the_first_bar(binance: Any) -> None:
    page = await binance.fetch_ohlcv("XRP/USDT", "1m", since=0, limit=1)
    assert page[0][0] == WELL_KNOWN[3].listed_ms


async def test_the_last_row_runs_until_its_minute_is_over(
    exchange: SimulatedExchange, binance: Any, clock: ManualClock
) -> None:
    early = (await binance.fetch_ohlcv("BTC/USDT", "1m", limit=2))[-1]
    clock.advance(30)
    late = (await binance.fetch_ohlcv("BTC/USDT", "1m", limit=2))[-1]
    clock.advance(30)
    final, running = await binance.fetch_ohlcv("BTC/USDT", "1m", limit=2)
    assert early[0] == late[0] == final[0] == RUNNING
    assert early[5] < late[5] < final[5]
    assert running[0] == RUNNING + MINUTE_MS
    truth = exchange.truth.bars("BTC/USDT", "1m", RUNNING, RUNNING + 1).columns()
    assert final[1:] == [truth[name][0] for name in ("open", "high", "low", "close", "volume")]


async def test_tickers_trades_and_time(binance: Any) -> None:
    ticker = await binance.fetch_ticker("BTC/USDT")
    assert ticker["low"] <= ticker["last"] <= ticker["high"]
    assert ticker["bid"] < ticker["last"] < ticker["ask"]
    assert len(await binance.fetch_tickers(["BTC/USDT", "ETH/USDT"])) == 2
    assert len(await binance.fetch_bids_asks()) == len(WELL_KNOWN)
    trades = await binance.fetch_trades("BTC/USDT", since=START, limit=300)
    assert len(trades) == 300
    assert trades[0]["timestamp"] >= START
    (bar,) = await binance.fetch_ohlcv("BTC/USDT", "1m", since=START, limit=1)
    inside = [trade for trade in trades if trade["timestamp"] < START + MINUTE_MS]
    assert sum(trade["amount"] for trade in inside) == pytest.approx(bar[5])
    newest = await binance.fetch_trades("BTC/USDT", limit=5)
    assert newest[-1]["timestamp"] <= NOW
    plain = await binance.fetch_trades("BTC/USDT", limit=5, params={"method": "publicGetTrades"})
    assert [trade["id"] for trade in plain] == [trade["id"] for trade in newest]
    following = await binance.public_get_aggtrades(
        {"symbol": "BTCUSDT", "fromId": newest[-1]["id"]}
    )
    assert [str(trade["a"]) for trade in following] == [newest[-1]["id"]]
    assert await binance.fetch_time() == NOW


async def test_ccxt_calls_an_unknown_symbol_a_bad_symbol(binance: Any) -> None:
    with pytest.raises(ccxt.BadSymbol):
        await binance.public_get_klines({"symbol": "NOPE", "interval": "1m"})


async def test_a_market_comes_and_goes(clock: ManualClock) -> None:
    day = 1440 * MINUTE_MS
    market = SimulatedMarket("NEW", "USDT", RUNNING + day, 1.0, delisted_ms=RUNNING + 2 * day)
    async with (
        SimulatedExchange(clock=clock, listed=[*listings(), market]) as exchange,
        client_of(exchange) as client,
    ):
        assert "NEW/USDT" not in await client.load_markets(True)
        clock.advance(86_400)
        assert (await client.load_markets(True))["NEW/USDT"]["active"]
        clock.advance(86_400)
        assert not (await client.load_markets(True))["NEW/USDT"]["active"]


# --- Faults -------------------------------------------------------------------------------------


async def test_429_and_418_are_what_ccxt_calls_them(
    exchange: SimulatedExchange, binance: Any, clock: ManualClock
) -> None:
    exchange.faults.add(TooManyRequests(count=1, retry_after_s=7))
    with pytest.raises(ccxt.DDoSProtection, match="429"):
        await binance.fetch_time()
    assert binance.last_response_headers["Retry-After"] == "7"
    exchange.faults.add(Ban(count=1, retry_after_s=120))
    with pytest.raises(ccxt.DDoSProtection, match="418"):
        await binance.fetch_time()
    clock.advance(119)
    with pytest.raises(ccxt.DDoSProtection, match="banned until"):
        await binance.fetch_time()
    clock.advance(119)
    with pytest.raises(ccxt.DDoSProtection):
        await binance.fetch_time()  # The last request started the ban anew.
    clock.advance(120)
    assert await binance.fetch_time()
    entries = exchange.journal.since()
    assert [entry.status for entry in entries] == [429, 418, 418, 418, 200]
    assert [entry.violation for entry in entries] == [False, False, True, True, False]


async def test_broken_connections_reach_the_client(
    exchange: SimulatedExchange, binance: Any
) -> None:
    exchange.faults.add(ServerError(count=1))
    with pytest.raises(ccxt.OperationFailed, match="-1000"):
        await binance.fetch_time()
    exchange.faults.add(Truncated(count=1))
    with pytest.raises(ccxt.ExchangeError):  # Not a NetworkError, though it is one.
        await binance.fetch_time()
    # aiohttp sends a GET again when a used connection breaks: the journal tells.
    exchange.journal.clear()
    exchange.faults.replace([Reset(count=2)])
    with pytest.raises(ccxt.NetworkError):
        await binance.fetch_time()
    binance.timeout = 100
    exchange.faults.replace([Hang(count=1)])
    with pytest.raises(ccxt.RequestTimeout):
        await binance.fetch_time()
    assert await binance.fetch_time() == NOW
    statuses = [entry.status for entry in exchange.journal.since()]
    assert statuses[-2:] == [0, 200]
    assert set(statuses[:-1]) == {0}


@pytest.mark.parametrize("fault", [Malformed(), Html()])
async def test_ccxt_takes_a_broken_body_for_an_empty_page(
    exchange: SimulatedExchange, binance: Any, fault: Any
) -> None:
    # Not what one would wish, but what a collector has to live with.
    await binance.load_markets()
    exchange.faults.add(fault)
    assert await binance.fetch_ohlcv("BTC/USDT", "1m", since=START, limit=10) == []


async def test_wrong_types_pass_through_ccxt(exchange: SimulatedExchange, binance: Any) -> None:
    await binance.load_markets()
    exchange.faults.add(WrongTypes(count=1))
    page = await binance.fetch_ohlcv("BTC/USDT", "1m", since=START, limit=10)
    assert len(page) == 10
    assert any(None in row for row in page)
    assert any(isinstance(value, float) and math.isnan(value) for row in page for value in row)
    exchange.faults.add(WrongTypes(nan=True))
    assert await binance.fetch_ohlcv("BTC/USDT", "1m", since=START, limit=10) == []


# --- As a class of ccxt -------------------------------------------------------------------------


async def test_the_ccxt_class_knows_no_other_host(exchange: SimulatedExchange) -> None:
    client = quick(simulated({"options": {"url": exchange.url}}))
    try:
        assert set(client.urls["api"].values()) == {f"{exchange.url}/api/v3"}
        assert len(await client.load_markets()) == len(WELL_KNOWN)
        page = await client.fetch_ohlcv("LINK/USDT", "1h", since=START, limit=5)
        assert len(page) == 5
        with pytest.raises(ccxt.NotSupported):
            await client.fapipublic_get_time()
        assert client.id == "simulated"
        assert "1s" not in client.timeframes
        assert not client.has["createOrder"]
    finally:
        await client.close()


async def test_a_clock_that_is_ahead(clock: ManualClock) -> None:
    faults = [ClockDrift(ms=-200)]
    async with (
        SimulatedExchange(clock=clock, offset_ms=90_000, faults=faults) as exchange,
        client_of(exchange) as client,
    ):
        page = await client.fetch_ohlcv("BTC/USDT", "1m", limit=1)
        assert page[0][0] == RUNNING + MINUTE_MS
        assert await client.fetch_time() == NOW + 90_000 - 200
