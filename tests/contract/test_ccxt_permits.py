"""No token, no request: compared at the wire, for every method and every way it can end."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from aiohttp import web

from collector.clock import SystemClock
from collector.errors import (
    BadRequest,
    DatabaseUnavailable,
    ExchangeBlocked,
    ExchangeUnavailable,
    RateLimited,
)
from collector.exchanges.ccxt.catalog import ccxt_ids
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.ccxt.visit import VisitOver
from tests.support.ccxt_venue import (
    FIRST_BAR_MS,
    MINUTE,
    NotedPermit,
    Venue,
    breaks_off,
    drops,
    hangs,
    opened,
    says,
    serving,
)

METHODS = {
    "load_markets": lambda exchange: exchange.load_markets(),
    "fetch_bars": lambda exchange: exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3),
    "first_bar": lambda exchange: exchange.first_bar("BTC/USDT", MINUTE),
    "server_ms": lambda exchange: exchange.server_ms(),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("exchange_id", ["binance", "simulated", "bybit"])
async def test_every_request_has_a_token_of_its_own(exchange_id: str, method: str) -> None:
    async with opened(exchange_id) as desk:
        await METHODS[method](desk.exchange)
        assert desk.venue.requests
        desk.assert_one_token_a_request()


@pytest.mark.parametrize("turn", ["429", "418", "500", "drop", "break off", "hang", "redirect"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("exchange_id", ["binance", "bybit"])
async def test_also_when_the_venue_fails(exchange_id: str, method: str, turn: str) -> None:
    async with opened(exchange_id, timeout_ms=60 if turn == "hang" else 5_000) as desk:
        desk.venue.always = {
            "drop": drops,
            "break off": breaks_off,
            "hang": hangs(desk.venue),
            "redirect": says(302, headers={"Location": f"{desk.address}/api/v3/time"}),
        }.get(turn) or says(int(turn), {"code": -1, "msg": "no"})
        with pytest.raises((ExchangeBlocked, ExchangeUnavailable)):
            await METHODS[method](desk.exchange)
        desk.assert_no_request_without_a_token()


@pytest.mark.parametrize("method", METHODS)
async def test_a_denial_comes_out_as_it_is_and_sends_nothing(method: str) -> None:
    denial = RateLimited("binance", 1_234, "window")
    permit = NotedPermit(deny=denial)
    async with opened("binance", permit=permit) as desk:
        with pytest.raises(RateLimited) as caught:
            await METHODS[method](desk.exchange)
        assert caught.value is denial
        assert not desk.venue.requests
        assert not permit.answers


@pytest.mark.parametrize("turn", ["answer", "429", "drop", "hang", "refused"])
async def test_only_the_first_bytes_of_an_answer_tell_how_far_away_the_exchange_is(
    turn: str,
) -> None:
    async with opened("binance", timeout_ms=60 if turn == "hang" else 5_000) as desk:
        assert desk.venue.runner is not None
        if turn == "refused":
            await desk.venue.runner.cleanup()
        turns = {"429": says(429, {}), "drop": drops, "hang": hangs(desk.venue)}
        desk.venue.always = turns.get(turn)
        with suppress(ExchangeBlocked, ExchangeUnavailable):
            await desk.exchange.server_ms()
        answer = desk.permit.answers[-1]
        assert answer.arrived_at is not None
        assert answer.is_timed == (turn in ("answer", "429"))


async def test_a_request_that_would_leave_late_buys_another_token() -> None:
    async with opened("binance") as desk:
        desk.permit.granted.clear()
        desk.permit.answers.clear()
        desk.venue.requests.clear()
        desk.permit.late = 1
        await desk.exchange.server_ms()
        assert (len(desk.permit.granted), len(desk.venue.requests)) == (2, 1)
        assert [answer.outcome for answer in desk.permit.answers] == ["2xx"]


async def test_a_long_wait_for_a_token_is_not_an_exchange_that_does_not_answer() -> None:
    async with opened("binance", timeout_ms=1_000) as desk:
        desk.permit.wait_s = 1.2
        assert await desk.exchange.server_ms()


async def test_one_that_gets_none_is_not_sent_and_leaves_its_connection_to_the_next() -> None:
    denial = RateLimited("binance", 1_234, "window")
    async with opened("binance", markets=False) as desk:
        permit = desk.permit
        permit.late, permit.grants, permit.deny = 1, 1, denial
        with pytest.raises(RateLimited) as caught:
            await desk.exchange.server_ms()
        assert caught.value is denial
        assert not desk.venue.requests
        assert not permit.answers
        assert desk.venue.connections == 1
        permit.deny = None
        await desk.exchange.server_ms()
        assert len(desk.venue.requests) == desk.venue.connections == 1


@pytest.mark.parametrize("grants", range(5))
async def test_a_denial_among_requests_made_together_leaves_none_running(grants: int) -> None:
    """Bybit's markets are five requests at once; ccxt abandons the others when one fails."""
    denial = RateLimited("bybit", 50, "window")
    permit = NotedPermit(grants=grants, deny=denial)
    async with opened("bybit", permit=permit, markets=False) as desk:
        with pytest.raises(RateLimited) as caught:
            await desk.exchange.load_markets()
        assert caught.value is denial
        heard = len(permit.answers)
        assert heard == len(permit.granted) == grants
        # Whatever was abandoned would run now.
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(permit.granted) == grants
        assert len(permit.answers) == heard
        assert len(desk.venue.requests) <= grants


async def test_a_permit_that_fails_otherwise_is_heard_too() -> None:
    outage = DatabaseUnavailable("no primary")
    async with opened("binance", permit=NotedPermit(deny=outage)) as desk:
        with pytest.raises(DatabaseUnavailable) as caught:
            await desk.exchange.server_ms()
        assert caught.value is outage


async def test_weights_are_the_venues_own() -> None:
    async with opened("binance") as desk:
        await desk.exchange.load_markets()
        await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 1000)
        await desk.exchange.server_ms()
        calls = [(call.endpoint, call.weight) for call in desk.permit.granted]
        assert calls == [("exchangeInfo", 20), ("klines", 2), ("time", 1)]


@pytest.mark.parametrize(("limit", "weight"), [(99, 1), (100, 2), (499, 2), (500, 5), (1000, 5)])
async def test_futures_weigh_by_the_size_of_the_page(limit: int, weight: int) -> None:
    async with opened("binanceusdm") as desk:
        await desk.exchange.fetch_bars("BTC/USDT:USDT", MINUTE, FIRST_BAR_MS, limit)
        assert desk.permit.granted[0].weight == weight


async def test_the_permit_hears_headers_and_how_long_it_took() -> None:
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, [], headers={"X-MBX-USED-WEIGHT-1M": "57"}))
        await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        answer = desk.permit.answers[0]
        assert answer.outcome == "2xx"
        assert answer.headers["x-mbx-used-weight-1m"] == "57"
        assert answer.seconds > 0


async def test_a_status_is_heard_even_when_its_body_never_comes() -> None:
    async def banned(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            status=418, headers={"Content-Length": "99", "Retry-After": "7"}
        )
        await response.prepare(request)
        assert request.transport is not None
        request.transport.close()
        return response

    async with opened("binance") as desk:
        desk.venue.turns.append(banned)
        with pytest.raises(ExchangeBlocked) as caught:
            await desk.exchange.server_ms()
        assert caught.value.retry_after_ms == 7_000
        assert desk.permit.answers[0].outcome == "4xx"


async def test_a_cancelled_call_is_cancelled_and_the_permit_hears_of_it() -> None:
    async with opened("binance") as desk:
        desk.venue.always = hangs(desk.venue)
        call = asyncio.create_task(METHODS["fetch_bars"](desk.exchange))
        await desk.venue.arrived(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert [answer.outcome for answer in desk.permit.answers] == ["none"]


async def test_a_cancelled_load_of_markets_leaves_nothing_running() -> None:
    async with opened("bybit", markets=False) as desk:
        desk.venue.always = hangs(desk.venue)
        call = asyncio.create_task(desk.exchange.load_markets())
        await desk.venue.arrived(5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert [answer.outcome for answer in desk.permit.answers] == ["none"] * 5
        desk.venue.always = None
        assert (await desk.exchange.load_markets()).markets


async def test_ccxt_cannot_be_asked_behind_the_adapters_back() -> None:
    async with opened("binance") as desk:
        ccxt = desk.exchange._ccxt
        with pytest.raises(RuntimeError, match="through the adapter"):
            await ccxt.fetch_time()
        with pytest.raises(Exception, match="binance GET"):  # below fetch2 and its throttle
            await ccxt.fetch(f"{desk.address}/api/v3/time")
        assert not desk.venue.requests


@pytest.mark.timeout(60)
async def test_no_exchange_of_ccxt_gets_round_the_permit_or_to_another_host() -> None:
    """Every exchange loads its markets at a venue that is down. A stray host is a ConfigError."""
    asked = 0
    venue = Venue("none", always=says(503, text="down"))
    async with serving(venue) as address:
        for exchange_id in sorted({*ccxt_ids(), "simulated"}):
            venue.requests.clear()
            permit = NotedPermit()
            exchange = CcxtExchange(
                exchange_id, permit, urls={exchange_id: address}, clock=SystemClock()
            )
            # A few have their markets built in, and two want a key before they ask anything.
            with suppress(ExchangeUnavailable, BadRequest):
                await exchange.load_markets()
            await exchange.close()
            assert len(venue.requests) <= len(permit.granted), exchange_id
            assert len(permit.answers) == len(permit.granted), exchange_id
            asked += bool(venue.requests)
    assert asked > 90


async def test_a_denial_that_ccxt_swallows_comes_out_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denial = RateLimited("binance", 1, "window")
    async with opened("binance", permit=NotedPermit(deny=denial)) as desk:
        ask = desk.exchange._ccxt.fetch_time

        async def swallow() -> int:
            with suppress(Exception):
                await ask()
            return 5

        monkeypatch.setattr(desk.exchange._ccxt, "fetch_time", swallow)
        with pytest.raises(RateLimited) as caught:
            await desk.exchange.server_ms()
        assert caught.value is denial


async def test_a_task_left_behind_cannot_send_after_its_call_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = asyncio.Event()
    left: list[asyncio.Task[int]] = []
    async with opened("binance") as desk:
        ask = desk.exchange._ccxt.fetch_time

        async def late() -> int:
            await ended.wait()
            return int(await ask())

        async def leave_behind() -> int:
            left.append(asyncio.create_task(late()))
            return 5

        monkeypatch.setattr(desk.exchange._ccxt, "fetch_time", leave_behind)
        assert await desk.exchange.server_ms() == 5
        ended.set()
        with pytest.raises(VisitOver):
            await left[0]
        assert not desk.permit.granted
        assert not desk.venue.requests


async def test_one_token_is_one_request_when_a_kept_alive_connection_was_dropped() -> None:
    async with opened("binance") as desk:
        await desk.exchange.server_ms()
        desk.venue.turns.append(drops)
        with pytest.raises(ExchangeUnavailable, match="dropped"):
            await desk.exchange.server_ms()
        assert len(desk.venue.requests) == 2
        desk.assert_one_token_a_request()
        assert await desk.exchange.server_ms()


async def test_a_plain_session_would_have_sent_it_twice() -> None:
    venue = Venue("binance")
    async with serving(venue) as address, aiohttp.ClientSession() as session:
        async with session.get(f"{address}/api/v3/time"):
            pass
        venue.turns.append(drops)
        async with session.get(f"{address}/api/v3/time"):
            pass
    assert len(venue.requests) == 3


async def test_a_redirect_is_not_followed() -> None:
    elsewhere = Venue("binance")
    async with serving(elsewhere) as other, opened("binance") as desk:
        desk.venue.turns.append(says(307, headers={"Location": f"{other}/api/v3/time"}))
        with pytest.raises(ExchangeUnavailable, match="redirect"):
            await desk.exchange.server_ms()
        assert desk.permit.answers[0].outcome == "3xx"
        assert not elsewhere.requests
        desk.assert_one_token_a_request()
