"""Keys at a local venue: what they may do is asked first, and too much is refused."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.errors import ExchangeBlocked, ExchangeUnavailable, KeyRefused
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.secrets import Credentials
from tests.support.ccxt_venue import Desk, NotedPermit, Venue, opened, says, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = Credentials("the-key", "the-secret")
QUESTIONS = {
    "binance": "/sapi/v1/account/apiRestrictions",
    "binanceusdm": "/sapi/v1/account/apiRestrictions",
    "bybit": "/v5/user/query-api",
}
READS = {"enableReading": True, "ipRestrict": False, "createTime": 1735689600000}


def binance(**rights: bool) -> dict[str, Any]:
    none = {"enableWithdrawals": False, "enableSpotAndMarginTrading": False, "enableFutures": False}
    return {**READS, **none, **rights}


def bybit(read_only: Any, **permissions: list[str]) -> dict[str, Any]:
    result = {"readOnly": read_only, "permissions": {"Spot": [], "Wallet": [], **permissions}}
    return {"retCode": 0, "retMsg": "", "result": result, "retExtInfo": {}, "time": 1735689600000}


@asynccontextmanager
async def with_key(exchange_id: str) -> AsyncIterator[Desk]:
    venue, permit = Venue(exchange_id), NotedPermit()
    async with serving(venue) as address:
        exchange = CcxtExchange(
            exchange_id, permit, urls={exchange_id: address}, clock=SystemClock(), key=KEY
        )
        try:
            yield Desk(venue, exchange, permit, address)
        finally:
            await exchange.close()


def paths(desk: Desk) -> list[str]:
    return [request.path for request in desk.venue.requests]


@pytest.mark.parametrize(
    ("exchange_id", "answer"),
    [
        ("binance", binance()),
        ("binanceusdm", binance(enableFixReadOnly=True)),
        ("bybit", bybit(1, Spot=["SpotTrade"])),
    ],
)
async def test_a_key_that_only_reads_is_asked_about_once(exchange_id: str, answer: Any) -> None:
    async with with_key(exchange_id) as desk:
        desk.venue.turns.append(says(200, answer))
        assert (await desk.exchange.load_markets()).markets
        await desk.exchange.server_ms()
        assert paths(desk)[0] == QUESTIONS[exchange_id]
        assert paths(desk).count(QUESTIONS[exchange_id]) == 1
        desk.assert_one_token_a_request()


@pytest.mark.parametrize(
    ("exchange_id", "answer", "named"),
    [
        ("binance", binance(enableWithdrawals=True), "enableWithdrawals"),
        ("binance", binance(enableSpotAndMarginTrading=True), "enableSpotAndMarginTrading"),
        ("binance", binance(permitsUniversalTransfer=True), "permitsUniversalTransfer"),
        ("binanceusdm", binance(enableFutures=True), "enableFutures"),
        ("bybit", bybit(0, Wallet=["Withdraw"]), "Wallet"),
        ("bybit", bybit(0), "write"),
    ],
)
async def test_a_key_that_can_do_more_is_refused_for_good(
    exchange_id: str, answer: Any, named: str
) -> None:
    async with with_key(exchange_id) as desk:
        desk.venue.turns.append(says(200, answer))
        for _ in range(2):
            with pytest.raises(KeyRefused, match=named) as told:
                await desk.exchange.load_markets()
            assert told.value.exit_name == "E_AUTH"
            assert "the-" not in str(told.value)
        assert paths(desk) == [QUESTIONS[exchange_id]], "it was used, or asked about again"


@pytest.mark.parametrize(
    ("exchange_id", "status", "answer"),
    [
        ("binance", 401, {"code": -2015, "msg": "Invalid API-key the-key, IP, or permissions."}),
        ("bybit", 200, {"retCode": 10003, "retMsg": "API key the-key is invalid.", "result": {}}),
    ],
)
async def test_a_key_that_the_venue_does_not_accept_is_refused(
    exchange_id: str, status: int, answer: Any
) -> None:
    async with with_key(exchange_id) as desk:
        desk.venue.turns.append(says(status, answer))
        with pytest.raises(KeyRefused, match="does not accept") as told:
            await desk.exchange.server_ms()
        assert "the-key" not in str(told.value)


@pytest.mark.parametrize("exchange_id", ["binance", "bybit"])
async def test_no_answer_is_no_leave_and_is_asked_for_again(exchange_id: str) -> None:
    async with with_key(exchange_id) as desk:
        desk.venue.turns += [says(503, text="down"), says(200, {"retCode": 0, "result": {}})]
        for _ in range(2):
            with pytest.raises(ExchangeUnavailable) as told:
                await desk.exchange.server_ms()
            assert "the-" not in str(told.value)
            assert "signature" not in str(told.value)
        desk.venue.turns.append(says(200, binance() if exchange_id == "binance" else bybit(1)))
        assert await desk.exchange.server_ms()


async def test_a_ban_is_heard_while_asking_about_a_key() -> None:
    async with with_key("binance") as desk:
        desk.venue.turns.append(says(418, {"code": -1003}, headers={"Retry-After": "7"}))
        with pytest.raises(ExchangeBlocked) as told:
            await desk.exchange.server_ms()
        assert told.value.retry_after_ms == 7_000


@pytest.mark.parametrize("exchange_id", ["binance", "bybit", "kraken"])
async def test_a_key_adds_nothing_to_what_is_asked(exchange_id: str) -> None:
    async with opened(exchange_id, markets=False) as plain:
        await plain.exchange.load_markets()
        without = sorted(paths(plain))
    async with with_key(exchange_id) as desk:
        desk.venue.turns.append(says(200, binance() if exchange_id == "binance" else bybit(1)))
        if exchange_id == "kraken":
            desk.venue.turns.clear()
        await desk.exchange.load_markets()
        question = QUESTIONS.get(exchange_id)
        assert sorted(path for path in paths(desk) if path != question) == without
        assert "the-" not in repr(vars(desk.exchange)["_key"])


async def test_where_nobody_can_tell_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with with_key("kraken") as desk:
        with caplog.at_level(logging.WARNING):
            await desk.exchange.server_ms()
            await desk.exchange.server_ms()
        assert caplog.text.count("key_not_checked") == 1
        assert "the-" not in caplog.text
        assert len(desk.venue.requests) == 2
