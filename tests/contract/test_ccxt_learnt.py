"""Exchanges that nobody has described: what their answers teach, and what is never believed.

Binance US speaks Binance's format and has no quirks of its own here; the local venue answers in
the many ways there are.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.exchanges.ccxt_exchange import CcxtExchange
from collector.exchanges.quirks import quirks_for
from tests.contract.ccxt_venue import (
    FIRST_BAR_MS,
    MINUTE,
    Desk,
    NotedPermit,
    Venue,
    load_quietly,
    says,
    serving,
)
from tests.contract.dialects import DIALECTS
from tests.contract.dialects.dialect import bar_at, dated

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


def claim(page: BarPage) -> tuple[int, int]:
    """From where a page speaks, and for how many bars."""
    return (page.asked_from_ms - FIRST_BAR_MS) // STEP, page.asked_limit


def test_it_is_not_described() -> None:
    assert not quirks_for(UNDESCRIBED).written
    assert quirks_for("binance").written


async def test_a_plain_venue_is_believed() -> None:
    async with a_venue_that(whole) as desk:
        page = await asked(desk, FIRST_BAR_MS, 500)
        assert claim(page) == (0, 500)
        assert len(page.rows) == 500


async def test_the_largest_page_is_learnt_from_answers_that_were_cut() -> None:
    async with a_venue_that(lambda since, limit: whole(since, limit, cap=200)) as desk:
        page = await asked(desk, FIRST_BAR_MS, 500)
        assert claim(page) == (0, 200), "it says nothing of the 300 it was asked for as well"
        page = await asked(desk, FIRST_BAR_MS + 200 * STEP, 500)
        assert claim(page) == (200, 200)
        await asked(desk, FIRST_BAR_MS + 400 * STEP, 500)
        assert [request.query["limit"] for request in desk.venue.requests] == ["500", "500", "200"]


async def test_a_quiet_market_is_no_small_page() -> None:
    """Three bars and then none: what follows is asked for again, and not as three."""

    def quiet(since: int, limit: int) -> list[int]:
        return [ts for ts in whole(since, limit) if (ts - FIRST_BAR_MS) // STEP % 500 < 3]

    async with a_venue_that(quiet) as desk:
        for start in (0, 500, 1000):
            page = await asked(desk, FIRST_BAR_MS + start * STEP, 400)
            assert claim(page) == (start, 3)
        page = await asked(desk, FIRST_BAR_MS + 3 * STEP, 400)
        assert page.rows == ()
        assert claim(page) == (3, 400), "nothing at all is a statement about the whole window"
        assert {request.query["limit"] for request in desk.venue.requests} == {"400"}


async def test_an_exclusive_since_is_learnt() -> None:
    async with a_venue_that(lambda since, limit: whole(since + 1, limit)) as desk:
        page = await asked(desk, FIRST_BAR_MS + 10 * STEP, 50)
        assert claim(page)[0] == 11, "nothing is said of the bar that was left out"
        page = await asked(desk, FIRST_BAR_MS + 10 * STEP, 50)
        assert page.rows[0][0] == FIRST_BAR_MS + 10 * STEP
        assert claim(page) == (10, 50)


async def test_a_venue_that_always_sends_its_latest_bars_says_nothing_of_older_ones() -> None:
    latest = [LAST_MS - at * STEP for at in range(100)][::-1]
    async with a_venue_that(lambda since, limit: latest) as desk:
        page = await asked(desk, FIRST_BAR_MS, 100)
        assert page.asked_from_ms == page.rows[0][0] == latest[0]


async def test_a_venue_that_jumps_to_the_first_bar_is_believed() -> None:
    async with a_venue_that(whole) as desk:
        page = await asked(desk, FIRST_BAR_MS - 5_000 * STEP, 100)
        assert claim(page) == (-5_000, 100)
        assert page.rows[0][0] == FIRST_BAR_MS


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
