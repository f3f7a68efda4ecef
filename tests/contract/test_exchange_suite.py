"""One suite for every exchange with quirks: through ccxt's own class, at a local server.

The server answers in the format that the venue documents, as written down in tests/recordings;
a dialect (tests/support/dialects) is how it reads a request and writes bars down.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.errors import BadRequest, ExchangeBlocked, ExchangeUnavailable
from collector.exchanges.ccxt.catalog import ccxt_class
from collector.exchanges.first_bar import Beginning
from collector.exchanges.quirks.lookup import WRITTEN_DOWN
from collector.market.answer import Question
from collector.market.interval import Interval, unbroken, union
from collector.market.timeframe import Timeframe
from collector.pipeline.evidence import Known, question_about, weigh
from tests.support.ccxt_venue import (
    FIRST_BAR_MS,
    MINUTE,
    RECORDINGS,
    Desk,
    Turn,
    opened,
    recording,
    says,
)
from tests.support.dialects import DIALECTS
from tests.support.dialects.dialect import Dialect, bar_at, dated

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from collector.market.answer import Answer
    from collector.pipeline.evidence import Verdict

STEP = MINUTE.ms
NOW_MS = FIRST_BAR_MS + 400 * 86_400_000 + 17_000
"""Seventeen seconds into a minute, by the venue's clock and ours."""
ERRORS = {
    "too_many": ExchangeBlocked,
    "ban": ExchangeBlocked,
    "maintenance": ExchangeUnavailable,
    "unknown_symbol": BadRequest,
    "delisted": BadRequest,
}
RECORDED = (
    (FIRST_BAR_MS, 93576.0, 93610.93, 93537.5, 93610.93, 8.21827, 768978.0152254),
    (FIRST_BAR_MS + STEP, 93610.93, 93652.0, 93606.2, 93652.0, 5.18453, 485428.2154748),
    (FIRST_BAR_MS + 2 * STEP, 93651.99, 93653.51, 93570.5, 93600.01, 6.72044, 629151.7113057),
)
RECORDED_COINM = ((FIRST_BAR_MS, 93500.1, 93520.4, 93490.0, 93510.2, 1.31983214, None),)

every_exchange = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)


def recorded_bars(dialect: Dialect) -> tuple[Any, ...]:
    if dialect.exchange_id == "kucoinfutures":  # in whole contracts, of a thousandth each
        return tuple((*bar[:5], round(bar[5], 3), bar[6]) for bar in RECORDED)
    return RECORDED_COINM if dialect.exchange_id == "binancecoinm" else RECORDED


def as_read(bar: tuple[Any, ...], dialect: Dialect) -> tuple[Any, ...]:
    return (*bar[:6], bar[6] if dialect.has_turnover else None)


def trading(dialect: Dialect, first_ms: int, now_ms: int) -> Turn:
    """The venue, on a day when everything works: one market, trading since `first_ms`."""

    async def turn(request: web.Request) -> web.StreamResponse:
        bars = dialect.answer(request, first_ms, now_ms)
        return await says(200, dialect.page(bars), headers=dated(now_ms))(request)

    return turn


@asynccontextmanager
async def at_venue(
    dialect: Dialect, *, first_ms: int = FIRST_BAR_MS, now_ms: int = NOW_MS
) -> AsyncIterator[Desk]:
    async with opened(dialect.exchange_id, clock=ManualClock(now_ms)) as desk:
        desk.venue.always = trading(dialect, first_ms, now_ms)
        yield desk


def verdict_on(*answers: Answer) -> Verdict:
    """What answers settle of a market that nothing is known of."""
    ended = [replace(each, ended_ms=MINUTE.floor(NOW_MS), at=NOW_MS) for each in answers]
    return weigh(Known(MINUTE, answers[0].question.limit), ended)


def settled(*answers: Answer) -> tuple[Interval, ...]:
    verdict = verdict_on(*answers)
    return union([*unbroken(verdict.bars.ts, MINUTE), *verdict.empty])


def opens_of(answer: Answer) -> list[int]:
    """The bars that were asked for. Others that came with them are anchors."""
    asked, times = answer.question.interval, answer.rows.times
    return [int(ts) for ts in times if asked.from_ms <= ts < asked.to_ms]


def oldest_ms(dialect: Dialect, frame: Timeframe = MINUTE) -> int:
    """The oldest bar worth asking for: some venues keep only the latest."""
    oldest = WRITTEN_DOWN[dialect.exchange_id].oldest_bars
    return FIRST_BAR_MS if oldest is None else frame.floor(NOW_MS) - (oldest - 1) * frame.ms


@pytest.mark.parametrize("exchange_id", WRITTEN_DOWN)
def test_an_exchange_with_quirks_has_recordings(exchange_id: str) -> None:
    if exchange_id == "simulated":  # speaks spot Binance's format
        return
    assert exchange_id in DIALECTS, "it is not in the suite"
    dialect = DIALECTS[exchange_id]
    recorded = {path.stem for path in (RECORDINGS / dialect.folder).glob("*.json")}
    assert {dialect.bars_file, "errors"} <= recorded
    assert recorded - {dialect.bars_file, "errors"}, "its markets are not recorded"
    assert set(ERRORS) <= set(recording(dialect.folder, "errors"))


@pytest.mark.parametrize("exchange_id", WRITTEN_DOWN)
def test_quirks_name_endpoints_that_there_are(exchange_id: str) -> None:
    quirks = WRITTEN_DOWN[exchange_id]
    known = set(endpoints(ccxt_class(exchange_id)().api))
    named = {name.split(" ")[0] for name in (*quirks.weights, *quirks.lists)}
    assert named <= known


def endpoints(api: Any) -> list[str]:
    if isinstance(api, list):
        return [name for name in api if isinstance(name, str)]
    if not isinstance(api, dict):
        return []
    return [*api, *(name for below in api.values() for name in endpoints(below))]


@every_exchange
async def test_the_recorded_page_reads_as_its_bars(dialect: Dialect) -> None:
    async with opened(dialect.exchange_id, clock=ManualClock(FIRST_BAR_MS)) as desk:
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, FIRST_BAR_MS, 3)
        assert page.rows == tuple(as_read(bar, dialect) for bar in recorded_bars(dialect))
        desk.assert_one_token_a_request()


@every_exchange
def test_the_local_venue_speaks_as_recorded(dialect: Dialect) -> None:
    spoken = dialect.page(recorded_bars(dialect))
    assert as_numbers(spoken) == as_numbers(recording(dialect.folder, dialect.bars_file))


def as_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_numbers(item) for item in value]
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


@every_exchange
async def test_markets_are_loaded_with_a_token_a_request(dialect: Dialect) -> None:
    async with opened(dialect.exchange_id, markets=False) as desk:
        markets = await desk.exchange.load_markets()
        active = {market.symbol: market.active for market in markets.markets}
        assert active[dialect.symbol]
        assert {"1m", "1h", "1d"} <= set(markets.timeframes)
        desk.assert_one_token_a_request()


@every_exchange
async def test_a_market_that_is_no_longer_traded_is_not_active(dialect: Dialect) -> None:
    """Its reason to stop and tell, before a request is refused. Some venues stop naming it."""
    async with opened(dialect.exchange_id, markets=False) as desk:
        markets = await desk.exchange.load_markets()
        inactive = {market.symbol for market in markets.markets if not market.active}
        assert inactive == ({dialect.delisted} if dialect.delisted else set())
        desk.venue.requests.clear()
        with pytest.raises(BadRequest, match="has no market 'GONE/USDT'"):
            await desk.exchange.fetch_bars("GONE/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert not desk.venue.requests


@every_exchange
async def test_the_largest_page_comes_whole(dialect: Dialect) -> None:
    quirks = WRITTEN_DOWN[dialect.exchange_id]
    since = oldest_ms(dialect)
    async with at_venue(dialect) as desk:
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 50_000)
        assert page.question == Question.of(MINUTE, since, quirks.largest_page)
        assert opens_of(page) == [since + at * STEP for at in range(quirks.largest_page)]
        assert settled(page) == (Interval(since, min(page.question.to_ms, MINUTE.floor(NOW_MS))),)
        assert len(desk.venue.requests) == 1


@every_exchange
@pytest.mark.parametrize("name", ["1h", "1d"])
async def test_no_page_of_longer_bars_claims_what_was_not_sent(dialect: Dialect, name: str) -> None:
    """Some venues limit days, not bars: a page of those has to be as long as its claim."""
    frame, first_ms = Timeframe.parse(name), NOW_MS - 1_500 * 86_400_000
    capped = WRITTEN_DOWN[dialect.exchange_id].oldest_bars is not None
    since = max(frame.next_open(first_ms), oldest_ms(dialect, frame) if capped else 0)
    async with at_venue(dialect, first_ms=first_ms) as desk:
        page = await desk.exchange.fetch_bars(dialect.symbol, frame, since, 50_000)
        opens = opens_of(page)
        ends_now = opens[-1] == frame.floor(NOW_MS)
        assert len(opens) == page.question.limit or ends_now
        assert opens[0] == page.question.from_ms


@every_exchange
async def test_pages_join_without_a_gap_or_an_overlap(dialect: Dialect) -> None:
    since = oldest_ms(dialect)
    opens: list[Any] = []
    async with at_venue(dialect) as desk:
        for _ in range(4):
            start = since + len(opens) * STEP
            page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, start, 40)
            assert page.rows == tuple(as_read(bar_at(int(row[0])), dialect) for row in page.rows)
            opens += opens_of(page)
    assert opens == [since + at * STEP for at in range(160)]


@every_exchange
async def test_the_bar_at_since_is_sent(dialect: Dialect) -> None:
    since = oldest_ms(dialect) + 10 * STEP
    async with at_venue(dialect) as desk:
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 5)
        assert opens_of(page)[0] == since
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since + 1, 5)
        assert opens_of(page)[0] == since + STEP


@every_exchange
async def test_the_running_bar_is_not_a_fact(dialect: Dialect) -> None:
    running = MINUTE.floor(NOW_MS)
    since = running - 3 * STEP
    async with at_venue(dialect) as desk:
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 10)
        assert page.server_ms is not None
        assert page.rows[-1][0] == running
        assert verdict_on(page).bars.ts.tolist() == [since, since + STEP, since + 2 * STEP]
        assert settled(page) == (Interval(since, running),)
        assert verdict_on(page).silences == (), "what comes behind it is not known"


@every_exchange
async def test_an_empty_page_is_a_page(dialect: Dialect) -> None:
    async with at_venue(dialect) as desk:
        desk.venue.turns.append(says(200, dialect.page([]), headers=dated(NOW_MS)))
        since = oldest_ms(dialect)
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 100)
        assert page.rows == ()
        assert page.question == Question.of(MINUTE, since, 100)
        assert settled(page) == ()


@every_exchange
@pytest.mark.parametrize("body", ["", "null", "{}", "[1, 2]", "<html>busy</html>", '{"data": nul'])
async def test_a_broken_answer_is_no_page(dialect: Dialect, body: str) -> None:
    async with at_venue(dialect) as desk:
        desk.venue.turns.append(says(200, text=body))
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_bars(dialect.symbol, MINUTE, oldest_ms(dialect), 100)
        desk.assert_one_token_a_request()


@every_exchange
@pytest.mark.parametrize("kind", ERRORS)
async def test_errors_become_the_reaction_they_ask_for(dialect: Dialect, kind: str) -> None:
    said = recording(dialect.folder, "errors")[kind]
    headers = {**dated(NOW_MS), **said.get("headers", {})}
    async with at_venue(dialect) as desk:
        desk.venue.turns.append(
            says(said["status"], said.get("body"), text=said.get("text"), headers=headers)
        )
        with pytest.raises(ERRORS[kind]) as caught:
            await desk.exchange.fetch_bars(dialect.symbol, MINUTE, oldest_ms(dialect), 100)
        desk.assert_one_token_a_request()
        if ERRORS[kind] is ExchangeBlocked:
            assert caught.value.retry_after_ms == said.get("retry_after_ms")  # type: ignore[attr-defined]


@every_exchange
async def test_what_is_too_old_is_never_taken_for_empty(dialect: Dialect) -> None:
    """Before the first bar comes nothing or the first bars; beyond a venue's memory, a refusal."""
    oldest = WRITTEN_DOWN[dialect.exchange_id].oldest_bars
    since = FIRST_BAR_MS - 30 * 86_400_000
    async with at_venue(dialect) as desk:
        if oldest is not None:
            with pytest.raises(BadRequest, match=f"only the latest {oldest} bars of 1m"):
                await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 100)
            assert not desk.venue.requests
            return
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 100)
        assert page.question.from_ms == since
        assert [row[0] for row in page.rows[:1]] == ([FIRST_BAR_MS] if dialect.jumps else [])
        assert settled(page) == ()


async def test_kraken_speaks_only_from_its_oldest_bar_on() -> None:
    oldest = MINUTE.floor(NOW_MS) - 719 * STEP
    async with at_venue(DIALECTS["kraken"]) as desk:
        page = await desk.exchange.fetch_bars("BTC/USD", MINUTE, oldest - 30 * STEP, 400)
        assert page.rows[0][0] == oldest
        asked = page.question.interval
        assert settled(page) == (Interval(oldest, asked.to_ms),), "no word on what it lost"


@every_exchange
async def test_a_full_answer_that_begins_late_says_nothing_about_what_it_lost(
    dialect: Dialect,
) -> None:
    """Of a window that is too long, all but a few venues send the newest bars."""
    quirks = WRITTEN_DOWN[dialect.exchange_id]
    since, late = oldest_ms(dialect), 10 * STEP
    sent = [bar_at(since + late + at * STEP) for at in range(quirks.largest_page)]
    async with at_venue(dialect) as desk:
        desk.venue.turns.append(says(200, dialect.page(sent), headers=dated(NOW_MS)))
        page = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 50_000)
        assert page.rows[0][0] == since + late
        end_ms = min(page.question.to_ms, MINUTE.floor(NOW_MS))
        assert settled(page) == (Interval(since + late, end_ms),)


async def test_a_quiet_market_of_upbit_is_told_from_before_the_window_on() -> None:
    """It counts bars back from an end: those from before the window are anchors of its silence."""
    dialect, since = DIALECTS["upbit"], FIRST_BAR_MS + 500 * STEP
    opens = [since + at * STEP for at in (*range(-190, 0), *range(8, 18))]
    async with at_venue(dialect) as desk:
        desk.venue.always = says(200, dialect.page([bar_at(ts) for ts in opens]))
        one = await desk.exchange.fetch_bars(dialect.symbol, MINUTE, since, 200)
        assert one.rows.times.tolist() == opens
        assert opens_of(one) == opens[-10:]
        assert settled(one) == (Interval(opens[-10], opens[-1] + STEP),)
        ask = verdict_on(one).ask
        assert ask is not None
        assert ask.from_ms == since
        question = question_about(Known(MINUTE, 200), ask, [one])
        other = await desk.exchange.fetch_bars(
            dialect.symbol, MINUTE, question.from_ms, question.limit
        )
        assert Interval(since, opens[-10]) in verdict_on(one, other).empty


async def test_gate_refuses_what_it_no_longer_has() -> None:
    said = recording("gate", "errors")["too_old"]
    async with at_venue(DIALECTS["gate"]) as desk:
        desk.venue.turns.append(says(said["status"], said["body"]))
        with pytest.raises(BadRequest, match="10000 points ago"):
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, oldest_ms(DIALECTS["gate"]), 1000)


@every_exchange
@pytest.mark.parametrize("days", [1, 399])
async def test_the_first_bar_is_found_in_few_requests(dialect: Dialect, days: int) -> None:
    quirks = WRITTEN_DOWN[dialect.exchange_id]
    first_ms = MINUTE.floor(NOW_MS) - days * 86_400_000 + 61 * STEP
    async with at_venue(dialect, first_ms=first_ms) as desk:
        first_ms = max(first_ms, oldest_ms(dialect) if quirks.oldest_bars else 0)
        found = await desk.exchange.first_bar(dialect.symbol, MINUTE)
        assert found == Beginning(first_ms, first_ms)
        # One of them confirms it.
        most = 2 if quirks.counts_rows else 21
        assert 2 <= len(desk.venue.requests) <= most
        desk.assert_one_token_a_request()


@every_exchange
async def test_the_venues_clock(dialect: Dialect) -> None:
    async with opened(dialect.exchange_id) as desk:
        if dialect.clock_ms is None:
            with pytest.raises(BadRequest, match="not supported"):
                await desk.exchange.server_ms()
        else:
            assert await desk.exchange.server_ms() == dialect.clock_ms


@every_exchange
async def test_a_part_of_the_markets_is_never_taken_for_all(dialect: Dialect) -> None:
    """Whichever request of several fails, the list is refused; a shorter one would delist."""
    async with opened(dialect.exchange_id, markets=False) as desk:
        await desk.exchange.load_markets()
        count = len(desk.venue.requests)
    for broken in range(count):
        async with opened(dialect.exchange_id, markets=False) as desk:

            async def replay(request: web.Request, desk: Desk = desk, broken: int = broken) -> Any:
                failing = desk.venue.requests.index(request) == broken
                turn = (
                    says(503, text="busy") if failing else says(200, desk.venue.recorded(request))
                )
                return await turn(request)

            desk.venue.always = replay
            with pytest.raises(ExchangeUnavailable):
                await desk.exchange.load_markets()
