"""The first bar of a market: found in few requests, each with its token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.errors import RateLimited
from collector.market.timeframe import Timeframe
from tests.support.ccxt_venue import FIRST_BAR_MS, MINUTE, Desk, NotedPermit, Turn, opened, says

if TYPE_CHECKING:
    from aiohttp import web

NOW_MS = 1_750_000_000_000
BYBIT_INTERVALS = {"1": "1m", "60": "1h", "D": "1d"}
LAUNCHED_MS = 1584230400000  # what the recording says of BTC/USDT:USDT


def windowed(first_ms: int, last_ms: int = NOW_MS, newest: int = 1000) -> Turn:
    """Bybit's way: the bars of the window from `start`, none if the market is younger."""

    async def turn(request: web.Request) -> web.StreamResponse:
        timeframe = Timeframe.parse(BYBIT_INTERVALS[request.query["interval"]])
        start, limit = int(request.query["start"]), int(request.query["limit"])
        opens = range(
            max(start, timeframe.floor(first_ms)), start + limit * timeframe.ms, timeframe.ms
        )
        rows: list[Any] = [[str(t), "1", "2", "0.5", "1", "3", "4"] for t in opens if t <= last_ms]
        rows = rows[-newest:]
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
        asked = [request.query["interval"] for request in desk.venue.requests]
        assert asked == ["D", "D", "1", "1"], (
            "the time before it, its page, and before the first row"
        )


@pytest.mark.parametrize("first_ms", [LAUNCHED_MS - 30 * 86_400_000, 1_514_764_800_000])
async def test_a_listing_date_that_is_too_late_loses_no_history(first_ms: int) -> None:
    """OKX lists a market of 2018 as of November 2020."""
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms)
        assert await desk.exchange.earliest_bar_ms("BTC/USDT:USDT", MINUTE) == first_ms
        assert len(desk.venue.requests) <= 12


async def test_the_search_is_not_misled_by_a_venue_that_sends_its_newest_rows_only() -> None:
    """100 rows of 1000 that were asked for: the oldest rows of the window are not the first."""
    first_ms = 1_625_832_000_000
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms, newest=100)
        assert await desk.exchange.earliest_bar_ms("BTC/USDT", MINUTE) == first_ms


@pytest.mark.parametrize("symbol", ["BTC/USDT", "BTC/USDT:USDT"])
async def test_the_search_is_not_misled_by_one_empty_answer(symbol: str) -> None:
    """Whichever request meets it: a venue answers empty when it is busy."""
    first_ms = LAUNCHED_MS - 30 * 86_400_000
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms)
        await desk.exchange.earliest_bar_ms(symbol, MINUTE)
        count = len(desk.venue.requests)
    for busy in range(count):
        async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:

            async def turn(
                request: web.Request, desk: Desk = desk, busy: int = busy
            ) -> web.StreamResponse:
                is_busy = desk.venue.requests.index(request) == busy
                return await (windowed(NOW_MS, last_ms=0) if is_busy else windowed(first_ms))(
                    request
                )

            desk.venue.always = turn
            found = await desk.exchange.earliest_bar_ms(symbol, MINUTE)
            assert found == first_ms, f"request {busy} was empty"


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
        assert len(desk.venue.requests) <= 12
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
        for grants in range(1, 16):
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
