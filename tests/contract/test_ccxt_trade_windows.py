"""Gate's trades through ccxt: windows at the wire, and every trade of a tape in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.trades import LIVE_EDGE_MS
from collector.market.trade import Trade
from tests.support.ccxt_venue import opened, says
from tests.support.dialects.dialect import dated
from tests.support.gate_tape import KEPT_MS, Tape, playing, row

if TYPE_CHECKING:
    from tests.support.ccxt_venue import Desk

NOW = 1_735_732_800_000
HOUR = 3_600_000
DAY = 24 * HOUR
SYMBOL = "BTC/USDT"


def tape(*bursts: tuple[int, int, int], **fields: int) -> Tape:
    """Bursts of trades: when, how many, how far apart."""
    times = sorted(at + n * apart for at, count, apart in bursts for n in range(count))
    trades = [Trade(str(700 + n), ts, 100.5 + n, 0.25, "sell") for n, ts in enumerate(times)]
    return Tape(tuple(trades), **fields)


async def walked(desk: Desk, since: int) -> dict[str, Trade]:
    """Every trade from `since` to the present, as a job gathers them."""
    kept: dict[str, Trade] = {}
    is_latest = False
    while not is_latest:
        assert len(desk.venue.requests) < 100, "it does not come to an end"
        page = await desk.exchange.fetch_trades(SYMBOL, since)
        kept |= {trade.id: trade for trade in page.trades}
        since, is_latest = page.to_ms, page.is_latest
    assert since == NOW - LIVE_EDGE_MS
    return kept


@pytest.mark.parametrize(("leaves_out_ms", "adds_ms"), [(0, 1000), (0, 0), (1, 1), (1000, 0)])
async def test_every_trade_comes_whatever_the_ends_of_a_window_mean(
    leaves_out_ms: int, adds_ms: int
) -> None:
    since = NOW - 3 * DAY
    played = tape(
        (since, 30, 1_000),
        (since + HOUR, 3_500, 400),
        (since + DAY, 2_600, 0),
        (since + 2 * DAY, 1_500, 1),
        (NOW - 5 * 60_000, 1_200, 100),
        leaves_out_ms=leaves_out_ms,
        adds_ms=adds_ms,
    )
    async with opened("gate", clock=ManualClock(NOW)) as desk:
        desk.venue.always = playing(desk.venue, played, ManualClock(NOW))
        kept = await walked(desk, since)
        assert kept == {trade.id: trade for trade in played.trades}
        desk.assert_one_token_a_request()


async def test_a_window_is_named_in_gates_own_words() -> None:
    since = NOW - 3 * DAY
    async with opened("gate", clock=ManualClock(NOW)) as desk:
        desk.venue.always = says(200, [], headers=dated(NOW))
        page = await desk.exchange.fetch_trades(SYMBOL, since + 250)
        assert (page.trades, page.from_ms, page.to_ms) == ((), since + 250, since + HOUR)
        await desk.exchange.fetch_trades(SYMBOL, NOW - 60_000)
        first, live = desk.venue.requests
        assert first.path == "/api/v4/spot/trades"
        assert dict(first.query) == {
            "currency_pair": "BTC_USDT",
            "limit": "1000",
            "from": str(since // 1000 - 1),
            "to": str((since + HOUR) // 1000),
        }
        assert "to" not in live.query
        assert [call.weight for call in desk.permit.granted] == [1, 1]


async def test_a_second_of_too_many_trades_is_turned_page_by_page() -> None:
    since = NOW - 3 * DAY
    played = tape((since, 2_400, 0), (since + 10_000, 5, 1))
    async with opened("gate", clock=ManualClock(NOW)) as desk:
        desk.venue.always = playing(desk.venue, played, ManualClock(NOW))
        assert len(await walked(desk, since)) == 2_405
        pages = [request.query.get("page") for request in desk.venue.requests]
        assert pages.count("2") >= 1
        assert pages.count("3") == 1


async def test_what_gate_no_longer_keeps_is_not_asked_for_and_the_page_says_so() -> None:
    played = tape((NOW - 40 * DAY, 5, 1_000), (NOW - 29 * DAY, 5, 1_000))
    async with opened("gate", clock=ManualClock(NOW)) as desk:
        desk.venue.always = playing(desk.venue, played, ManualClock(NOW))
        page = await desk.exchange.fetch_trades(SYMBOL, 0)
        assert NOW - KEPT_MS < page.from_ms < NOW - KEPT_MS + 2 * HOUR
        # The next question, a little later, is not too late again.
        again = await desk.exchange.fetch_trades(SYMBOL, page.from_ms)
        assert again.from_ms == page.from_ms
        assert len(await walked(desk, 0)) == 5


async def test_a_clock_that_is_wrong_settles_nothing_that_is_not() -> None:
    since = NOW - HOUR
    played = tape((since, 60, 60_000))
    for ours in (NOW - 300_000, NOW + 300_000):
        async with opened("gate", clock=ManualClock(ours)) as desk:
            desk.venue.always = playing(desk.venue, played, ManualClock(NOW))
            assert len(await walked(desk, since)) == 60


async def test_contracts_are_asked_for_their_newest_trades() -> None:
    later = NOW - 5_000
    told = [
        {
            "id": 7,
            "contract": "BTC_USDT",
            "create_time": later / 1000,
            "create_time_ms": later / 1000,
            "size": -3,
            "price": "93576.1",
        }
    ]
    async with opened("gate", clock=ManualClock(NOW)) as desk:
        desk.venue.turns.append(says(200, told, headers=dated(NOW)))
        page = await desk.exchange.fetch_trades("BTC/USDT:USDT", NOW - HOUR)
        (request,) = desk.venue.requests
        assert request.path == "/api/v4/futures/usdt/trades"
        assert not {"from", "to", "limit"} & set(request.query)
        assert (page.from_ms, page.is_latest) == (later, True)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"label": "BUSY"},
        [{**row(Trade("1", NOW - HOUR, 1.0, 1.0)), "price": None}],
        [{**row(Trade("1", NOW - HOUR, 1.0, 1.0)), "create_time_ms": "soon"}],
        ["nonsense"],
    ],
)
async def test_a_broken_answer_is_no_page_and_moves_no_window(body: Any) -> None:
    since = NOW - 3 * DAY
    async with opened("gate", clock=ManualClock(NOW)) as desk:
        desk.venue.turns += [says(200, body, headers=dated(NOW)), says(200, [], headers=dated(NOW))]
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_trades(SYMBOL, since)
        await desk.exchange.fetch_trades(SYMBOL, since)
        first, again = desk.venue.requests
        assert dict(first.query) == dict(again.query)
        desk.assert_one_token_a_request()
