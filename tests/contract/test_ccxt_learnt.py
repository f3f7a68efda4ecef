"""Exchanges without a record: what their answers teach, and what a single one settles.

Binance US speaks Binance's format, and its record is taken away here; the local venue answers in
the many ways there are. The rule is collector/pipeline/evidence.py; nothing is known of the market
before.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.quirks.lookup import WRITTEN_DOWN
from collector.exchanges.registry import quirks_for
from collector.market.interval import unbroken, union
from collector.pipeline.evidence import Known, question_about, weigh, weigh_usual
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiohttp import web

    from collector.market.answer import Answer
    from collector.pipeline.evidence import Verdict

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


async def asked(desk: Desk, since: int, limit: int) -> Answer:
    """The answer, as a worker completes it."""
    answer = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, since, limit)
    return replace(answer, ended_ms=LAST_MS, at=NOW_MS)


def verdict_on(*answers: Answer) -> Verdict:
    return weigh(Known(MINUTE, 1000), answers)


def settled(*answers: Answer) -> list[tuple[int, int]]:
    """What answers settle, as bars or as empty: from which slot on, and how many."""
    verdict = verdict_on(*answers)
    whole = union([*unbroken(verdict.bars.ts, MINUTE), *verdict.empty])
    return [(slot(each.from_ms), slot(each.to_ms) - slot(each.from_ms)) for each in whole]


def slot(ts: int) -> int:
    return (ts - FIRST_BAR_MS) // STEP


def test_it_is_not_described() -> None:
    assert not quirks_for(UNDESCRIBED).written
    assert quirks_for("binance").written


async def test_a_bar_in_every_slot_settles_the_whole_page() -> None:
    async with a_venue_that(whole) as desk:
        answer = await asked(desk, FIRST_BAR_MS, 500)
        assert settled(answer) == [(0, 500)]
        assert len(answer.rows) == 500
        assert weigh_usual(Known(MINUTE, 1000), answer), "nothing is left to ask"


async def test_an_answer_that_was_cut_settles_up_to_its_last_row() -> None:
    async with a_venue_that(lambda since, limit: whole(since, limit, cap=200)) as desk:
        for start in (0, 200):
            answer = await asked(desk, FIRST_BAR_MS + start * STEP, 500)
            assert answer.full
            assert settled(answer) == [(start, 200)]
            assert verdict_on(answer).silences == (), "it says nothing of the other 300"


@pytest.mark.parametrize(("size", "cap"), [(300, 100), (1440, 440), (1000, 500)])
async def test_an_answer_that_lost_its_oldest_rows_settles_from_its_first_one_on(
    size: int, cap: int
) -> None:
    def newest(since: int, limit: int) -> list[int]:
        first = -(-max(since, FIRST_BAR_MS) // STEP) * STEP
        window = range(first, min(since + limit * STEP, LAST_MS + 1), STEP)
        return [*window][-cap:]

    async with a_venue_that(newest) as desk:
        answer = await asked(desk, FIRST_BAR_MS, size)
        size = answer.question.limit
        assert settled(answer) == [(size - cap, cap)]


async def test_rows_that_came_twice_are_one_each() -> None:
    """1,001 rows for a page of 1,000: the last slot is not cut off, and no page is larger."""

    def twice(since: int, limit: int) -> list[int]:
        opens = whole(since, limit)
        return sorted([*opens, opens[7]])

    async with a_venue_that(twice) as desk:
        answer = await asked(desk, FIRST_BAR_MS, 1000)
        assert len(answer.rows) == 1001
        assert settled(answer) == [(0, 1000)]
        assert verdict_on(answer).ask is None
        assert answer.full
    async with a_venue_that(whole) as desk:
        await asked(desk, FIRST_BAR_MS, 100)
        opens = whole(FIRST_BAR_MS, 79)
        rows = DIALECTS["binance"].page([bar_at(ts) for ts in (*opens, opens[-1])])
        desk.venue.turns.append(says(200, rows, headers=dated(NOW_MS)))
        answer = await asked(desk, FIRST_BAR_MS, 80)
        assert len(answer.rows) == 80
        assert not answer.full, "79 bars of 80, and one of them twice"
        assert settled(answer) == [(0, 79)]


async def test_the_silence_behind_the_last_row_is_heard_and_not_believed() -> None:
    """Three bars and then none: too few to have been cut, and nothing stands behind the silence."""

    def quiet(since: int, limit: int) -> list[int]:
        return [ts for ts in whole(since, limit) if slot(ts) % 500 < 3]

    async with a_venue_that(quiet) as desk:
        for start in (0, 500, 1000):
            answer = await asked(desk, FIRST_BAR_MS + start * STEP, 400)
            assert not answer.full
            assert settled(answer) == [(start, 3)]
            [silence] = verdict_on(answer).silences
            assert (slot(silence.from_ms), slot(silence.to_ms)) == (start + 3, start + 400)


async def test_an_empty_page_settles_nothing() -> None:
    async with a_venue_that(lambda since, limit: []) as desk:
        answer = await asked(desk, FIRST_BAR_MS, 400)
        assert answer.rows == ()
        assert settled(answer) == []
        assert settled(answer, await asked(desk, FIRST_BAR_MS - STEP, 400)) == []


async def test_an_exclusive_since_is_learnt() -> None:
    async with a_venue_that(lambda since, limit: whole(since + 1, limit)) as desk:
        answer = await asked(desk, FIRST_BAR_MS + 10 * STEP, 50)
        assert settled(answer) == [(11, 49)], "nothing is said of the bar that was left out"
        answer = await asked(desk, FIRST_BAR_MS + 10 * STEP, 50)
        assert answer.rows[0][0] == FIRST_BAR_MS + 10 * STEP
        assert settled(answer) == [(10, 50)]


async def test_an_answer_that_ignores_since_settles_nothing() -> None:
    latest = [LAST_MS - at * STEP for at in range(100)][::-1]
    async with a_venue_that(lambda since, limit: latest) as desk:
        answer = await asked(desk, FIRST_BAR_MS, 100)
        assert settled(answer) == []
        assert answer.rows.times.tolist() == latest
        again = await asked(desk, FIRST_BAR_MS - STEP, 101)
        assert settled(answer, again) == [], "nor do two of them that agree"


async def test_an_answer_that_ignores_since_is_no_anchor_on_both_sides() -> None:
    """The market's first bars, whatever `since` says: all of them lie before the question."""
    async with a_venue_that(lambda since, limit: whole(FIRST_BAR_MS, limit)) as desk:
        answer = await asked(desk, FIRST_BAR_MS + 5_000 * STEP, 100)
        assert settled(answer) == []
        assert answer.rows.times[0] == FIRST_BAR_MS


async def test_rows_from_before_the_question_are_kept_as_anchors() -> None:
    """All of the last day, whatever `since` says: the answer is not full of the wrong rows."""
    latest = [LAST_MS - at * STEP for at in range(1441)][::-1]
    async with a_venue_that(lambda since, limit: latest) as desk:
        since = LAST_MS - 99 * STEP
        answer = await asked(desk, since, 100)
        assert answer.rows.times.tolist() == latest
        assert settled(answer) == [(slot(since), 99)], "the hundredth still runs"


async def test_a_silence_between_a_row_before_the_question_and_one_in_it_is_heard() -> None:
    since = FIRST_BAR_MS + 1_000 * STEP
    silent = range(slot(since), slot(since) + 5)

    def early(since: int, limit: int) -> list[int]:
        opens = whole(since - 20 * STEP, limit + 20)
        return [ts for ts in opens if slot(ts) not in silent]

    async with a_venue_that(early) as desk:
        answer = await asked(desk, since, 100)
        assert settled(answer) == [(slot(since) + 5, 95)]
        [silence] = verdict_on(answer).silences
        assert (slot(silence.from_ms), slot(silence.to_ms)) == (silent.start, silent.stop)
        assert silence.heard == 1, "with a row on either side"


async def test_a_venue_that_jumps_to_the_first_bar_is_not_believed_before_it() -> None:
    async with a_venue_that(whole) as desk:
        answer = await asked(desk, FIRST_BAR_MS - 5_000 * STEP, 100)
        assert settled(answer) == []
        assert answer.rows[0][0] == FIRST_BAR_MS


async def test_silences_between_rows_are_settled_by_a_second_question() -> None:
    """Rows that are counted from `since` on, in a market that trades every other minute."""

    def sparse(since: int, limit: int) -> list[int]:
        return [ts for ts in whole(since, 10_000, cap=10_000) if slot(ts) % 2][:limit]

    async with a_venue_that(sparse) as desk:
        first = await asked(desk, FIRST_BAR_MS, 100)
        assert first.rows.times[-1] > first.question.to_ms, "a row behind the question anchors it"
        assert settled(first) == [(at, 1) for at in range(1, 100, 2)]
        ask = verdict_on(first).ask
        assert ask is not None
        question = question_about(Known(MINUTE, 1000), ask, [first])
        second = await asked(desk, question.from_ms, question.limit)
        [(start, count)] = settled(first, second)
        assert start == 1, "before the first row there is no anchor"
        assert start + count >= 99


@pytest.mark.parametrize("newest_first", [False, True])
async def test_order_needs_no_learning(newest_first: bool) -> None:
    def ordered(since: int, limit: int) -> list[int]:
        return whole(since, limit)[::-1] if newest_first else whole(since, limit)

    async with a_venue_that(ordered) as desk:
        answer = await asked(desk, FIRST_BAR_MS, 20)
        opens: list[Any] = [row[0] for row in answer.rows]
        assert opens == [FIRST_BAR_MS + at * STEP for at in range(20)]


async def test_at_the_live_edge_a_short_page_is_no_cut_one() -> None:
    async with a_venue_that(whole) as desk:
        answer = await asked(desk, LAST_MS - 5 * STEP, 100)
        assert len(answer.rows) == 6
        assert answer.question.limit == 100
        assert not answer.full
        assert settled(answer) == [(slot(LAST_MS) - 5, 5)]
