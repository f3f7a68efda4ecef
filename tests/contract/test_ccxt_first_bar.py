"""The first bar of a market: found in few requests, each with its token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.errors import RateLimited
from collector.market.timeframe import Timeframe
from tests.contract.ccxt_venue import FIRST_BAR_MS, MINUTE, NotedPermit, Turn, opened, says

if TYPE_CHECKING:
    from aiohttp import web

NOW_MS = 1_750_000_000_000
BYBIT_INTERVALS = {"1": "1m", "60": "1h", "D": "1d"}
LAUNCHED_MS = 1584230400000  # what the recording says of BTC/USDT:USDT


def windowed(first_ms: int, last_ms: int = NOW_MS) -> Turn:
    """Bybit's way: the bars of the window from `start`, none if the market is younger."""

    async def turn(request: web.Request) -> web.StreamResponse:
        timeframe = Timeframe.parse(BYBIT_INTERVALS[request.query["interval"]])
        start, limit = int(request.query["start"]), int(request.query["limit"])
        opens = range(
            max(start, timeframe.floor(first_ms)), start + limit * timeframe.ms, timeframe.ms
        )
        rows: list[Any] = [[str(t), "1", "2", "0.5", "1", "3", "4"] for t in opens if t <= last_ms]
        page = {"retCode": 0, "result": {"list": rows[::-1]}, "time": NOW_MS}
        return await says(200, page)(request)

    return turn


async def test_binance_tells_when_asked_from_1970() -> None:
    async with opened("binance") as desk:
        assert await desk.exchange.earliest_bar_ms("BTC/USDT", MINUTE) == FIRST_BAR_MS
        (request,) = desk.venue.requests
        assert (request.query["startTime"], request.query["limit"]) == ("0", "1")


async def test_a_market_without_bars_has_no_first() -> None:
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, []))
        assert await desk.exchange.earliest_bar_ms("BTC/USDT", MINUTE) is None


async def test_a_listing_date_saves_the_search() -> None:
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(LAUNCHED_MS + 600_000)
        found = await desk.exchange.earliest_bar_ms("BTC/USDT:USDT", MINUTE)
        assert found == LAUNCHED_MS + 600_000
        assert len(desk.venue.requests) == 1


async def test_coin_margined_futures_start_at_their_listing() -> None:
    async with opened("binancecoinm", clock=ManualClock(NOW_MS)) as desk:
        assert await desk.exchange.earliest_bar_ms("BTC/USD:BTC", MINUTE) == FIRST_BAR_MS
        (request,) = desk.venue.requests
        assert request.query["startTime"] == "1597042800000"


@pytest.mark.parametrize(
    "first_ms",
    [
        1_262_304_000_000 + 60_000,  # the first minute that is looked at
        1_400_000_040_000,
        1_625_832_000_000,  # noon
        1_649_893_200_000,
        NOW_MS - 3_600_000 - NOW_MS % 60_000,
    ],
)
@pytest.mark.parametrize("name", ["1m", "1h", "1d"])
async def test_the_search_finds_the_very_bar(first_ms: int, name: str) -> None:
    timeframe = Timeframe.parse(name)
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms)
        found = await desk.exchange.earliest_bar_ms("BTC/USDT", timeframe)
        assert found == timeframe.floor(first_ms)
        assert len(desk.venue.requests) <= 8
        desk.assert_one_token_a_request()


async def test_a_market_that_lived_and_died_is_found() -> None:
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(1_530_000_000_000, last_ms=1_560_000_000_000)
        found = await desk.exchange.earliest_bar_ms("BTC/USDT", MINUTE)
        assert found == 1_530_000_000_000
        desk.venue.always = windowed(NOW_MS, last_ms=0)
        assert await desk.exchange.earliest_bar_ms("BTC/USDT", MINUTE) is None


async def test_a_search_goes_on_where_the_limiter_stopped_it() -> None:
    """With one token at a time it would otherwise never end."""
    permit = NotedPermit(deny=RateLimited("bybit", 1, "window"))
    async with opened("bybit", permit=permit, clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(1_625_832_000_000)
        found = None
        for grants in range(1, 10):
            permit.grants = grants
            try:
                found = await desk.exchange.earliest_bar_ms("BTC/USDT", MINUTE)
                break
            except RateLimited:
                continue
        assert found == 1_625_832_000_000
        desk.assert_one_token_a_request()


async def test_kraken_serves_only_the_latest_bars() -> None:
    async with opened("binance", clock=ManualClock(NOW_MS)) as desk:
        markets = await desk.exchange.load_markets()
    async with opened("kraken", markets=False, clock=ManualClock(NOW_MS)) as desk:
        desk.exchange.restore_markets(markets)
        oldest = MINUTE.floor(NOW_MS) - 719 * 60_000

        async def latest(request: web.Request) -> web.StreamResponse:
            row = [oldest // 1000, "1", "1", "1", "1", "1", "1", 1]
            return await says(200, {"error": [], "result": {"BTCUSDT": [row]}})(request)

        desk.venue.always = latest
        assert await desk.exchange.earliest_bar_ms("BTC/USDT", MINUTE) == oldest
        assert len(desk.venue.requests) == 1
