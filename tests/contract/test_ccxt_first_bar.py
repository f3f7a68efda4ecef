"""The first bar of a market: found in few requests, each with its token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.errors import ExchangeUnavailable, RateLimited
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS, ROUNDS, Beginning
from collector.market.timeframe import Timeframe
from tests.support.ccxt_venue import FIRST_BAR_MS, MINUTE, Desk, NotedPermit, Turn, opened, says
from tests.support.dialects import DIALECTS
from tests.support.dialects.dialect import bar_at, dated

if TYPE_CHECKING:
    from aiohttp import web

NOW_MS = 1_750_000_000_000
BYBIT_INTERVALS = {"1": "1m", "60": "1h", "D": "1d"}
LAUNCHED_MS = 1584230400000  # what the recording says of BTC/USDT:USDT


def windowed(
    first_ms: int, last_ms: int = NOW_MS, newest: int = 1000, *, first_day_ms: int | None = None
) -> Turn:
    """Bybit's way: the bars of the window from `start`, none if the market is younger.

    `first_day_ms`: its days reach further back than its other bars.
    """

    async def turn(request: web.Request) -> web.StreamResponse:
        name = BYBIT_INTERVALS[request.query["interval"]]
        timeframe = Timeframe.parse(name)
        begins_ms = first_day_ms if name == "1d" and first_day_ms is not None else first_ms
        start, limit = int(request.query["start"]), int(request.query["limit"])
        opens = range(
            max(start, timeframe.floor(begins_ms)), start + limit * timeframe.ms, timeframe.ms
        )
        return await bybit_rows([t for t in opens if t <= last_ms][-newest:])(request)

    return turn


async def bybit_newest(request: web.Request) -> web.StreamResponse:
    """The newest rows, whatever `start` says."""
    timeframe = Timeframe.parse(BYBIT_INTERVALS[request.query["interval"]])
    opens = [timeframe.shift(NOW_MS, -at) for at in range(int(request.query["limit"]))]
    return await bybit_rows(opens[::-1])(request)


def bybit_rows(opens: list[int]) -> Turn:
    rows: list[Any] = [[str(t), "1", "2", "0.5", "1", "3", "4"] for t in opens]
    return says(200, {"retCode": 0, "result": {"list": rows[::-1]}, "time": NOW_MS})


def counted(
    first_ms: int, *, first_day_ms: int | None = None, last_ms: int = NOW_MS, ignores: bool = False
) -> Turn:
    """Binance's way: `limit` rows from `startTime` on, from the first bar on when it is earlier.

    `ignores`: the newest rows, whatever `startTime` says.
    """

    async def turn(request: web.Request) -> web.StreamResponse:
        timeframe = Timeframe.parse(request.query["interval"])
        is_day = timeframe.name == "1d" and first_day_ms is not None
        begins_ms = timeframe.floor(first_day_ms if is_day and first_day_ms else first_ms)
        start, limit = int(request.query["startTime"]), int(request.query["limit"])
        since_ms = timeframe.shift(last_ms, -limit + 1) if ignores else max(start, begins_ms)
        since_ms = timeframe.ceil(since_ms)
        opens = [timeframe.shift(since_ms, at) for at in range(limit)]
        bars = [bar_at(ts) for ts in opens if ts <= last_ms]
        return await says(200, DIALECTS["binance"].page(bars), headers=dated(NOW_MS))(request)

    return turn


def once(desk: Desk, number: int, wrong: Turn, right: Turn) -> Turn:
    """One request, counted from 0, is answered wrongly, and the others are not."""

    async def turn(request: web.Request) -> web.StreamResponse:
        is_wrong = desk.venue.requests.index(request) == number
        return await (wrong if is_wrong else right)(request)

    return turn


def confirmed(first_ms: int) -> Beginning:
    """Two answers agree."""
    return Beginning(first_ms, first_ms)


async def test_binance_tells_when_asked_from_the_beginning_of_time() -> None:
    """One request for the bar, and one for a day that must contain it."""
    async with opened("binance") as desk:
        found = await desk.exchange.first_bar("BTC/USDT", MINUTE)
        assert found == confirmed(FIRST_BAR_MS)
        asked = [
            (int(each.query["startTime"]), each.query["interval"], each.query["limit"])
            for each in desk.venue.requests
        ]
        assert asked == [(BEFORE_ALL_MARKETS_MS, "1m", "1"), (BEFORE_ALL_MARKETS_MS, "1d", "2")]
        desk.assert_one_token_a_request()


async def test_a_market_without_bars_has_no_first() -> None:
    """Two empty answers; one may be a busy venue's."""
    async with opened("binance") as desk:
        desk.venue.always = says(200, [])
        assert await desk.exchange.first_bar("BTC/USDT", MINUTE) is None
        assert len(desk.venue.requests) == 2
        desk.venue.always = None
        desk.venue.turns.append(says(200, []))
        assert await desk.exchange.first_bar("BTC/USDT", MINUTE) == confirmed(FIRST_BAR_MS)


@pytest.mark.parametrize("name", ["1m", "1h", "1d"])
@pytest.mark.parametrize("number", [0, 1])
async def test_one_false_answer_loses_no_history_where_rows_are_counted(
    number: int, name: str
) -> None:
    """Whichever request the venue answers with its newest rows instead."""
    first_ms, timeframe = 1_625_832_000_000, Timeframe.parse(name)
    async with opened("binance", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = once(desk, number, counted(first_ms, ignores=True), counted(first_ms))
        found = await desk.exchange.first_bar("BTC/USDT", timeframe)
        assert found == confirmed(timeframe.floor(first_ms))
        assert len(desk.venue.requests) == 4


@pytest.mark.parametrize("symbol", ["BTC/USDT", "BTC/USDT:USDT"])
async def test_one_false_answer_loses_no_history_where_windows_are_served(symbol: str) -> None:
    """The same; the contract has a listing date, which is too late."""
    first_ms = LAUNCHED_MS - 30 * 86_400_000
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms)
        await desk.exchange.first_bar(symbol, MINUTE)
        count = len(desk.venue.requests)
    for number in range(count):
        async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
            desk.venue.always = once(desk, number, bybit_newest, windowed(first_ms))
            found = await desk.exchange.first_bar(symbol, MINUTE)
            assert found == confirmed(first_ms), f"request {number} was answered with the newest"
            assert len(desk.venue.requests) <= count + 2


async def test_days_that_begin_before_the_minutes_are_where_bars_are_expected() -> None:
    """Neither answer is a slip: they contradict each other each time."""
    first_ms = 1_625_832_000_000
    first_day_ms = first_ms - first_ms % 86_400_000 - 30 * 86_400_000
    for exchange_id, serve, most in (("binance", counted, 7), ("bybit", windowed, 16)):
        async with opened(exchange_id, clock=ManualClock(NOW_MS)) as desk:
            desk.venue.always = serve(first_ms, first_day_ms=first_day_ms)
            found = await desk.exchange.first_bar("BTC/USDT", MINUTE)
            assert found == Beginning(first_ms, from_ms=first_day_ms)
            assert len(desk.venue.requests) <= most, "three pairs, not more"


async def test_a_listing_date_saves_the_search() -> None:
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(LAUNCHED_MS + 600_000)
        found = await desk.exchange.first_bar("BTC/USDT:USDT", MINUTE)
        assert found == confirmed(LAUNCHED_MS + 600_000)
        asked = [request.query["interval"] for request in desk.venue.requests]
        assert asked == ["D", "D", "1", "1", "D"], (
            "the time before it, its page, before the first row, and the day that contains it"
        )


@pytest.mark.parametrize("first_ms", [LAUNCHED_MS - 30 * 86_400_000, 1_514_764_800_000])
async def test_a_listing_date_that_is_too_late_loses_no_history(first_ms: int) -> None:
    """OKX lists a market of 2018 as of November 2020."""
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms)
        assert await desk.exchange.first_bar("BTC/USDT:USDT", MINUTE) == confirmed(first_ms)
        assert len(desk.venue.requests) <= 12


async def test_the_search_is_not_misled_by_a_venue_that_sends_its_newest_rows_only() -> None:
    """100 rows of 1000 that were asked for: the oldest rows of the window are not the first."""
    first_ms = 1_625_832_000_000
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms, newest=100)
        assert await desk.exchange.first_bar("BTC/USDT", MINUTE) == confirmed(first_ms)


@pytest.mark.parametrize("symbol", ["BTC/USDT", "BTC/USDT:USDT"])
async def test_the_search_is_not_misled_by_one_empty_answer(symbol: str) -> None:
    """Whichever request meets it: a venue answers empty when it is busy."""
    first_ms = LAUNCHED_MS - 30 * 86_400_000
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(first_ms)
        await desk.exchange.first_bar(symbol, MINUTE)
        count = len(desk.venue.requests)
    for busy in range(count):
        async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
            desk.venue.always = once(desk, busy, bybit_rows([]), windowed(first_ms))
            found = await desk.exchange.first_bar(symbol, MINUTE)
            assert found == confirmed(first_ms), f"request {busy} was empty"


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
        found = await desk.exchange.first_bar("BTC/USDT", timeframe)
        assert found == confirmed(timeframe.floor(first_ms))
        assert len(desk.venue.requests) <= 12
        desk.assert_one_token_a_request()


async def test_a_market_that_lived_and_died_is_found() -> None:
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(1_530_000_000_000, last_ms=1_560_000_000_000)
        found = await desk.exchange.first_bar("BTC/USDT", MINUTE)
        assert found == confirmed(1_530_000_000_000)
        desk.venue.always = windowed(NOW_MS, last_ms=0)
        assert await desk.exchange.first_bar("BTC/USDT", MINUTE) is None


async def test_a_search_goes_on_where_the_limiter_stopped_it() -> None:
    """With one token at a time it would otherwise never end."""
    permit = NotedPermit(deny=RateLimited("bybit", 1, "window"))
    async with opened("bybit", permit=permit, clock=ManualClock(NOW_MS)) as desk:
        desk.venue.always = windowed(1_625_832_000_000)
        found = None
        for grants in range(1, 16):
            permit.grants = grants
            try:
                found = await desk.exchange.first_bar("BTC/USDT", MINUTE)
                break
            except RateLimited:
                continue
        assert found == confirmed(1_625_832_000_000)
        desk.assert_one_token_a_request()


async def test_a_search_goes_on_although_every_other_request_fails() -> None:
    """A run ends with the first failure: what was answered before is not asked again."""
    async with opened("bybit", clock=ManualClock(NOW_MS)) as desk:
        right = windowed(1_625_832_000_000)
        found, failures = None, 0

        async def turn(request: web.Request) -> web.StreamResponse:
            is_busy = len(desk.venue.requests) % 2 == 0
            return await (says(503, text="busy") if is_busy else right)(request)

        desk.venue.always = turn
        while found is None:
            try:
                found = await desk.exchange.first_bar("BTC/USDT", MINUTE)
            except ExchangeUnavailable:
                failures += 1
                assert failures <= 12
        assert found == confirmed(1_625_832_000_000)


async def test_a_first_bar_that_nothing_confirms_is_searched_for_anew() -> None:
    """Empty answers to all but the first question: the next search does not remember them."""
    first_ms = 1_625_832_000_000
    async with opened("binance", clock=ManualClock(NOW_MS)) as desk:

        async def speaks_once(request: web.Request) -> web.StreamResponse:
            is_first = request.query["limit"] == "1"
            return await (counted(first_ms) if is_first else says(200, []))(request)

        desk.venue.always = speaks_once
        for _ in range(2):
            desk.venue.requests.clear()
            with pytest.raises(ExchangeUnavailable, match="no second answer confirms"):
                await desk.exchange.first_bar("BTC/USDT", MINUTE)
            assert len(desk.venue.requests) == 2 + ROUNDS
        desk.venue.always = counted(first_ms)
        assert await desk.exchange.first_bar("BTC/USDT", MINUTE) == confirmed(first_ms)


async def test_without_longer_bars_another_question_confirms_the_first_bar() -> None:
    first_ms = 1_625_832_000_000
    async with opened("binance", clock=ManualClock(NOW_MS)) as desk:

        async def without_days(request: web.Request) -> web.StreamResponse:
            is_day = request.query["interval"] == "1d"
            return await (says(200, []) if is_day else counted(first_ms))(request)

        desk.venue.always = without_days
        assert await desk.exchange.first_bar("BTC/USDT", MINUTE) == confirmed(first_ms)


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
        assert await desk.exchange.first_bar("BTC/USDT", MINUTE) == confirmed(oldest)
        assert len(desk.venue.requests) == 2
