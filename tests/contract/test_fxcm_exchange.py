"""FXCM behind the port of exchanges: markets, bars, tokens and their outcomes."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from collector.errors import (
    BadRequest,
    ExchangeBlocked,
    ExchangeUnavailable,
    MarketsUnavailable,
    RateLimited,
)
from collector.exchanges.first_bar import Beginning
from collector.exchanges.fxcm.failures import FxcmNoData, FxcmNotReady
from collector.market.answer import Answer, Question
from collector.market.calendar.fx import FX
from collector.market.timeframe import Timeframe
from tests.support.ccxt_venue import NotedPermit
from tests.support.fxcm.adapter import PASSWORD, adapter
from tests.support.fxcm.server import NOON_MS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.fxcm.server import FakeServer

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
M1 = Timeframe.parse("1m").by(FX)
SATURDAY_MS = NOON_MS + 3 * DAY
NO_QUOTES = "PriceHistoryManager error: There are no quotes code: QuotesNotFound"
NOT_READY = "PriceHistoryManager error: PriceHistoryCommunicator is not ready. code: OtherError"


async def test_markets_are_the_offers_and_bars_need_them(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        with pytest.raises(MarketsUnavailable):
            await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 10)
        markets = await desk.markets()
        found = {market.symbol: (market.base, market.quote) for market in markets}
        assert found["XAU/USD"] == ("XAU", "USD")
        with pytest.raises(BadRequest, match="no instrument"):
            await desk.exchange.fetch_bars("EUR/SEK", M1, NOON_MS - HOUR, 10)
    # A table of offers is no history, and costs nothing of its budget.
    assert not desk.permit.granted
    assert fxcm_server.journal[0].fields["password"] == PASSWORD


async def test_a_page_is_one_call_with_one_token_and_its_outcome_is_reported(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        page = await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 30)
        assert page.question == Question.of(M1, NOON_MS - HOUR, 30)
        assert (len(page.rows), page.full) == (30, True)
        assert page.rows.times[0] == NOON_MS - HOUR
        assert page.rows.batch.extra.keys() == {"ask_o", "ask_h", "ask_l", "ask_c"}
        [answer] = desk.permit.answers
        assert (answer.outcome, answer.health, answer.error) == ("ok", "good", None)
        assert fxcm_server.count("history") == len(desk.permit.granted) == 1


async def test_a_denied_token_asks_nobody(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    denial = RateLimited("fxcm", 1_000, "minute_quota")
    permit = NotedPermit(grants=0, deny=denial)
    async with adapter(fxcm_server, fxcm_python, tmp_path, permit=permit) as desk:
        await desk.markets()
        with pytest.raises(RateLimited):
            await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 30)
    assert not fxcm_server.count("history")
    assert not permit.answers


async def test_calls_are_made_one_at_a_time_and_tokens_bought_when_it_is_their_turn(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        fxcm_server.change(hold_history=True)
        asking = [
            asyncio.create_task(desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5))
            for _ in range(3)
        ]
        await fxcm_server.seen("history")
        assert len(desk.permit.granted) == 1
        fxcm_server.release_history()
        await asyncio.gather(*asking)
        assert len(desk.permit.granted) == len(desk.permit.answers) == 3
        assert fxcm_server.count("login") == 1


async def test_a_cancelled_call_is_reported_as_given_up(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        fxcm_server.change(hold_history=True)
        asking = asyncio.create_task(desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5))
        await fxcm_server.seen("history")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        [answer] = desk.permit.answers
        assert (answer.outcome, answer.arrived_at, answer.health) == ("none", None, "unknown")
        fxcm_server.release_history()


async def test_no_data_is_an_empty_page_while_the_market_is_open(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    fxcm_server.change(first_ms=NOON_MS - HOUR)
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        page = await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - DAY, 30)
        assert (len(page.rows), page.full) == (0, False)
        [answer] = desk.permit.answers
        assert (answer.outcome, answer.health) == ("fxcm_no_data", "good")


async def test_no_data_and_not_ready_are_no_faults_while_the_market_is_closed(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path, now_ms=SATURDAY_MS) as desk:
        await desk.markets()
        for text, kind in ((NO_QUOTES, FxcmNoData), (NOT_READY, FxcmNotReady)):
            fxcm_server.change(history_error=text)
            with pytest.raises(kind):
                await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - DAY, 30)
        assert [answer.health for answer in desk.permit.answers] == ["unknown"] * 2
        assert desk.right.states == ["IDLE"]


async def test_the_first_bar_is_found_and_an_interrupted_search_goes_on(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    first_ms = NOON_MS - 40 * DAY
    fxcm_server.change(first_ms=first_ms)
    permit = NotedPermit(grants=10, deny=RateLimited("fxcm", 1_000, "minute_quota"))
    async with adapter(fxcm_server, fxcm_python, tmp_path, permit=permit) as desk:
        await desk.markets()
        with pytest.raises(RateLimited):
            await desk.exchange.first_bar("EUR/USD", M1)
        permit.deny = None
        first_ms = M1.next_open(first_ms - 1)
        assert await desk.exchange.first_bar("EUR/USD", M1) == Beginning(first_ms, first_ms)
        asked = fxcm_server.count("history")
        assert len(permit.granted) == asked
        # Ten calls were not made a second time.
        permit.granted.clear()
        await desk.exchange.first_bar("EUR/USD", M1)
        assert len(permit.granted) == asked


async def test_a_first_bar_that_nothing_confirms_is_searched_for_anew(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty answers at the end of the search: the next search does not remember them."""
    first_ms = M1.next_open(NOON_MS - 40 * DAY - 1)
    fxcm_server.change(first_ms=first_ms)
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        found = Beginning(first_ms, first_ms)
        assert await desk.exchange.first_bar("EUR/USD", M1) == found
        count = fxcm_server.count("history")
        fetch_bars, calls = desk.exchange.fetch_bars, itertools.count(1)

        async def fetch(symbol: str, timeframe: Timeframe, since_ms: int, limit: int) -> Answer:
            if next(calls) >= count:
                return Answer(Question.of(timeframe, since_ms, limit), full=False)
            return await fetch_bars(symbol, timeframe, since_ms, limit)

        with monkeypatch.context() as patched:
            patched.setattr(desk.exchange, "fetch_bars", fetch)
            with pytest.raises(ExchangeUnavailable, match="no second answer confirms"):
                await desk.exchange.first_bar("EUR/USD", M1)
        assert await desk.exchange.first_bar("EUR/USD", M1) == found


async def test_too_many_requests_reach_the_permit_as_a_block(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    fxcm_server.change(history_error="PriceHistoryManager error: stop code: LimitReached")
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        with pytest.raises(ExchangeBlocked):
            await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        [answer] = desk.permit.answers
        assert isinstance(answer.error, ExchangeBlocked)


async def test_tickers_are_the_offers(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        tickers = await desk.exchange.fetch_tickers()
        assert [each.symbol for each in tickers] == sorted(each.symbol for each in tickers)
        assert {"EUR/USD", "XAU/USD"} <= {each.symbol for each in tickers}


@pytest.mark.parametrize("name", ["1d", "1w", "1M"])
async def test_the_first_long_bar_is_found(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path, name: str
) -> None:
    first_ms, frame = NOON_MS - 40 * DAY, Timeframe.parse(name).by(FX)
    fxcm_server.change(first_ms=first_ms)
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        first_ms = frame.next_open(first_ms)
        assert await desk.exchange.first_bar("EUR/USD", frame) == Beginning(first_ms, first_ms)
        asked = [entry for entry in fxcm_server.journal if entry.what == "history"]
        assert all(entry.fields["to_ms"] <= NOON_MS + DAY for entry in asked)
