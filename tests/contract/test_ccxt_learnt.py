"""Exchanges without a record: what their answers teach, and what is never accepted.

Binance US speaks Binance's format, and its record is taken away here; the local venue answers in
the many ways there are.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.quirks.lookup import WRITTEN_DOWN
from collector.exchanges.registry import quirks_for
from collector.pipeline.proof import proven
from tests.support.ccxt_venue import (
    FIRST_BAR_MS,
    MINUTE,
    Desk,
    NotedPermit,
    Venue,
    load_quietly,
    says,
    serving,
)
from tests.support.dialects import DIALECTS
from tests.support.dialects.dialect import bar_at, dated
from workers.handlers.asking import extent_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiohttp import web

    from collector.exchanges.port import BarPage

    Opens = Callable[[int, int], list[int]]
    """From `since` and `limit` to the bars that the venue sends."""

UNDESCRIBED = "binanceus"
STEP = MINUTE.ms
NOW_MS = FIRST_BAR_MS + 10_000 * STEP + 17_000
LAST_MS = MINUTE.floor(NOW_MS)


@pytest.fixture(autouse=True)
def nobody_has_described_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(WRITTEN_DOWN, UNDESCRIBED)


@asynccontextmanager
async def a_venue_that(opens: Opens) -> AsyncIterator[Desk]:
    async def turn(request: web.Request) -> web.StreamResponse:
        since, limit = int(request.query["startTime"]), int(request.query["limit"])
        rows = [bar_at(ts) for ts in opens(since, limit)]
        return await says(200, DIALECTS["binance"].page(rows), headers=dated(NOW_MS))(request)

    venue, permit = Venue("binance"), NotedPermit()
    async with serving(venue) as address:
        exchange = CcxtExchange(
            UNDESCRIBED, permit, urls={UNDESCRIBED: address}, clock=ManualClock(NOW_MS)
        )
        try:
            await load_quietly(exchange, venue, address)
            venue.always = turn
            yield Desk(venue, exchange, permit, address)
        finally:
            await exchange.close()


def whole(since: int, limit: int, *, cap: int = 1000) -> list[int]:
    first = -(-max(since, FIRST_BAR_MS) // STEP) * STEP
    return [*range(first, LAST_MS + 1, STEP)][: min(limit, cap)]


async def asked(desk: Desk, since: int, limit: int) -> BarPage:
    return await desk.exchange.fetch_bars("BTC/USDT", MINUTE, since, limit)


def claim(page: BarPage) -> list[tuple[int, int]]:
    """What a page covers by itself: from which slot on, and how many."""
    found = proven([extent_of(page, MINUTE, NOW_MS)], MINUTE, LAST_MS)
    return [
        ((each.from_ms - FIRST_BAR_MS) // STEP, (each.to_ms - each.from_ms) // STEP)
        for each in found
    ]


def test_it_is_not_described() -> None:
    assert not quirks_for(UNDESCRIBED).written
    assert quirks_for("binance").written


async def test_a_plain_venue_is_believed() -> None:
    async with a_venue_that(whole) as desk:
        page = await asked(desk, FIRST_BAR_MS, 500)
        assert claim(page) == [(0, 500)]
        assert len(page.rows) == 500


async def test_an_answer_that_was_cut_settles_up_to_its_last_row() -> None:
    async with a_venue_that(lambda since, limit: whole(since, limit, cap=200)) as desk:
        page = await asked(desk, FIRST_BAR_MS, 500)
        assert claim(page) == [(0, 200)], "it says nothing of the 300 it was asked for as well"
        page = await asked(desk, FIRST_BAR_MS + 200 * STEP, 500)
        assert claim(page) == [(200, 200)]


@pytest.mark.parametrize(("size", "cap"), [(300, 100), (1440, 440), (1000, 500)])
async def test_an_answer_that_lost_its_oldest_rows_settles_from_its_first_one_on(
    size: int, cap: int
) -> None:
    def newest(since: int, limit: int) -> list[int]:
        first = -(-max(since, FIRST_BAR_MS) // STEP) * STEP
        window = range(first, min(since + limit * STEP, LAST_MS + 1), STEP)
        return [*window][-cap:]

    async with a_venue_that(newest) as desk:
        page = await asked(desk, FIRST_BAR_MS, size)
        size = page.asked_limit
        assert claim(page) == [(size - cap, cap)]


async def test_a_quiet_market_is_no_small_page() -> None:
    """Three bars and then none: too few to have been cut, so the silence behind them counts."""

    def quiet(since: int, limit: int) -> list[int]:
        return [ts for ts in whole(since, limit) if (ts - FIRST_BAR_MS) // STEP % 500 < 3]

    async with a_venue_that(quiet) as desk:
        for start in (0, 500, 1000):
            page = await asked(desk, FIRST_BAR_MS + start * STEP, 400)
            assert claim(page) == [(start, 400)]


async def test_an_empty_page_settles_nothing() -> None:
    async with a_venue_that(lambda since, limit: []) as desk:
        page = await asked(desk, FIRST_BAR_MS, 400)
        assert page.rows == ()
        assert claim(page) == []


async def test_an_exclusive_since_is_learnt() -> None:
    async with a_venue_that(lambda since, limit: whole(since + 1, limit)) as desk:
        page = await asked(desk, FIRST_BAR_MS + 10 * STEP, 50)
        assert claim(page)[0][0] == 11, "nothing is said of the bar that was left out"
        page = await asked(desk, FIRST_BAR_MS + 10 * STEP, 50)
        assert page.rows[0][0] == FIRST_BAR_MS + 10 * STEP
        assert claim(page) == [(10, 50)]


async def test_a_venue_that_always_sends_its_latest_bars_says_nothing_of_older_ones() -> None:
    latest = [LAST_MS - at * STEP for at in range(100)][::-1]
    async with a_venue_that(lambda since, limit: latest) as desk:
        page = await asked(desk, FIRST_BAR_MS, 100)
        assert claim(page) == []
        assert page.first_ms == latest[0]


async def test_what_came_before_the_moment_asked_for_is_known_and_left_out() -> None:
    """All of the last day, whatever `since` says: the page is not full of the wrong rows."""
    latest = [LAST_MS - at * STEP for at in range(1441)][::-1]
    async with a_venue_that(lambda since, limit: latest) as desk:
        page = await asked(desk, LAST_MS - 99 * STEP, 100)
        assert [row[0] for row in page.rows] == latest[-100:]
        assert page.first_ms == latest[0]
        assert claim(page)[0][1] == 100


async def test_a_venue_that_jumps_to_the_first_bar_is_not_believed_before_it() -> None:
    async with a_venue_that(whole) as desk:
        page = await asked(desk, FIRST_BAR_MS - 5_000 * STEP, 100)
        assert claim(page) == []
        assert page.rows[0][0] == FIRST_BAR_MS


async def test_a_venue_that_counts_rows_from_since_is_believed_before_its_first_one() -> None:
    def sparse(since: int, limit: int) -> list[int]:
        every = [ts for ts in whole(since, 10_000, cap=10_000) if (ts - FIRST_BAR_MS) % 120_000]
        return every[:limit]

    async with a_venue_that(sparse) as desk:
        page = await asked(desk, FIRST_BAR_MS, 100)
        assert claim(page)[0][0] == 1, "nobody knows yet"
        page = await asked(desk, FIRST_BAR_MS + STEP, 100)
        page = await asked(desk, FIRST_BAR_MS, 100)
        assert claim(page)[0][0] == 0


@pytest.mark.parametrize("newest_first", [False, True])
async def test_order_needs_no_learning(newest_first: bool) -> None:
    def ordered(since: int, limit: int) -> list[int]:
        return whole(since, limit)[::-1] if newest_first else whole(since, limit)

    async with a_venue_that(ordered) as desk:
        page = await asked(desk, FIRST_BAR_MS, 20)
        opens: list[Any] = [row[0] for row in page.rows]
        assert opens == [FIRST_BAR_MS + at * STEP for at in range(20)]


async def test_at_the_live_edge_a_short_page_is_no_cut_one() -> None:
    async with a_venue_that(whole) as desk:
        page = await asked(desk, LAST_MS - 5 * STEP, 100)
        assert len(page.rows) == 6
        assert page.asked_limit == 100
