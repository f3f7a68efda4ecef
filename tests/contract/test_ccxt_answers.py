"""Every error of a venue, over HTTP, becomes the reaction it asks for."""

from __future__ import annotations

import asyncio
import gc
import socket
import tracemalloc
import zlib
from email.utils import formatdate
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from collector.clock import ManualClock, SystemClock
from collector.durations import DAY_MS
from collector.errors import (
    BadRequest,
    CollectorError,
    ConfigError,
    ExchangeBlocked,
    ExchangeRefused,
    ExchangeUnavailable,
)
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.ccxt.request_hook import RequestHook
from collector.exchanges.ccxt.visit import Reply
from tests.support.ccxt_venue import (
    FIRST_BAR_MS,
    MINUTE,
    Desk,
    NotedPermit,
    Turn,
    Venue,
    hangs,
    load_quietly,
    opened,
    says,
    serving,
)

if TYPE_CHECKING:
    from collector.exchanges.port import Answer


async def fails(exchange_id: str, turn: Turn, **how: Any) -> Exception:
    """What the adapter raises when a venue answers a request for bars like this."""
    async with opened(exchange_id, **how) as desk:
        desk.venue.turns.append(turn)
        with pytest.raises(Exception) as caught:  # noqa: PT011
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        desk.assert_one_token_a_request()
        return caught.value


@pytest.mark.parametrize("exchange_id", ["binance", "bybit"])
@pytest.mark.parametrize("status", [429, 418])
async def test_too_many_requests_blocks_for_as_long_as_the_venue_says(
    exchange_id: str, status: int
) -> None:
    error = await fails(exchange_id, says(status, {}, headers={"Retry-After": "120"}))
    assert isinstance(error, ExchangeBlocked)
    assert error.retry_after_ms == 120_000
    assert str(status) in error.reason


async def test_retry_after_may_be_a_date_and_counts_on_the_venues_clock() -> None:
    # The venue's clock is years from ours; the 90 seconds between its own two dates count.
    headers = {"Date": formatdate(1_500_000_000), "Retry-After": formatdate(1_500_000_090)}
    error = await fails("binance", says(429, {}, headers=headers))
    assert isinstance(error, ExchangeBlocked)
    assert error.retry_after_ms == 90_000


async def test_a_block_without_an_end_has_none() -> None:
    error = await fails("binance", says(429, {"code": -1003, "msg": "Too many requests"}))
    assert isinstance(error, ExchangeBlocked)
    assert error.retry_after_ms is None


async def test_binance_says_in_words_until_when_an_address_is_banned() -> None:
    body = {"code": -1003, "msg": "Way too many requests; IP banned until 1700000090000."}
    error = await fails("binance", says(418, body), clock=ManualClock(1_700_000_000_000))
    assert isinstance(error, ExchangeBlocked)
    assert error.retry_after_ms == 90_000


@pytest.mark.parametrize("asked", ["1e30", "9" * 300, "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_no_venue_blocks_for_longer_than_a_year_or_delays_a_job_by_more_than_a_day(
    asked: str,
) -> None:
    blocked = await fails("binance", says(429, {}, headers={"Retry-After": asked}))
    assert isinstance(blocked, ExchangeBlocked)
    assert blocked.retry_after_ms == 365 * DAY_MS
    for status, error in ((503, ExchangeUnavailable), (404, ExchangeRefused)):
        later = await fails("binance", says(status, text="no", headers={"Retry-After": asked}))
        assert isinstance(later, error)
        assert later.retry_after_ms == DAY_MS


async def test_no_words_ban_for_longer_than_a_year() -> None:
    body = {"code": -1003, "msg": "Way too many requests; IP banned until 9999999999999."}
    error = await fails("binance", says(418, body))
    assert isinstance(error, ExchangeBlocked)
    assert error.retry_after_ms == 365 * DAY_MS


async def test_the_firewall_of_binance_holds_for_five_minutes() -> None:
    error = await fails("binance", says(403, text="<html>403 Forbidden</html>"))
    assert isinstance(error, ExchangeBlocked)
    assert error.retry_after_ms == 300_000


async def test_bybit_bans_for_ten_minutes_with_a_403() -> None:
    error = await fails("bybit", says(403, text="403, Access too frequent"))
    assert isinstance(error, ExchangeBlocked)
    assert error.retry_after_ms == 600_000


async def test_another_403_of_bybit_is_no_ban() -> None:
    text = "The Amazon CloudFront distribution is configured to block access from your country"
    error = await fails("bybit", says(403, text=text))
    assert isinstance(error, ExchangeRefused)
    assert error.kind == "403"
    assert "block access from your country" in str(error)


async def test_bybit_limits_in_the_body_of_a_200() -> None:
    body = {"retCode": 10006, "retMsg": "Too many visits!", "result": {}, "time": 1}
    assert isinstance(await fails("bybit", says(200, body)), ExchangeBlocked)


@pytest.mark.parametrize("exchange_id", ["binance", "bybit"])
@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 520, 524, 529, 599])
async def test_a_venue_in_trouble_is_unavailable(exchange_id: str, status: int) -> None:
    error = await fails(exchange_id, says(status, text="<html>oh no</html>"))
    assert isinstance(error, ExchangeUnavailable)
    assert f"{status} <html>oh no" in str(error)


async def test_an_empty_list_under_a_status_ccxt_does_not_know_is_no_page() -> None:
    for status in (524, 599):
        assert isinstance(await fails("binance", says(status, [])), ExchangeUnavailable)


async def test_trouble_may_come_with_a_hint() -> None:
    error = await fails("binance", says(503, text="busy", headers={"Retry-After": "3"}))
    assert isinstance(error, ExchangeUnavailable)
    assert error.retry_after_ms == 3_000


async def test_trouble_in_a_json_body_is_still_trouble() -> None:
    body = {"code": -1121, "msg": "Invalid symbol."}
    assert isinstance(await fails("binance", says(500, body)), ExchangeUnavailable)


@pytest.mark.parametrize("exchange_id", ["binance", "bybit"])
async def test_451_is_permanent(exchange_id: str) -> None:
    body = {"code": 0, "msg": "Service unavailable from a restricted location"}
    error = await fails(exchange_id, says(451, body))
    assert isinstance(error, BadRequest)
    assert "country" in str(error)
    assert "restricted location" in str(error)


@pytest.mark.parametrize("status", [400, 401, 404, 405, 410, 422])
async def test_a_bare_status_is_no_last_word(status: int) -> None:
    """It may be a gateway's: nothing in it says that the venue itself has answered."""
    for turn in (says(status, text="no such thing"), says(status, {"message": "no such thing"})):
        error = await fails("binance", turn)
        assert isinstance(error, ExchangeRefused)
        assert error.kind == str(status)
        assert "no such thing" in str(error)


async def test_a_bare_451_may_be_a_gateway_s() -> None:
    error = await fails("binance", says(451, text="<html>blocked</html>"))
    assert isinstance(error, ExchangeRefused)
    assert error.kind == "451"


async def test_a_symbol_the_venue_no_longer_has_is_a_bad_request() -> None:
    error = await fails("binance", says(400, {"code": -1121, "msg": "Invalid symbol."}))
    assert isinstance(error, BadRequest)
    assert "Invalid symbol" in str(error)
    body = {"retCode": 10001, "retMsg": "Not supported symbols", "result": {}, "time": 1}
    error = await fails("bybit", says(200, body))
    assert isinstance(error, BadRequest)
    assert "Not supported symbols" in str(error)


async def test_maintenance_in_the_body_of_a_200_is_unavailable() -> None:
    body = {"retCode": 10016, "retMsg": "Service error", "result": {}, "time": 1}
    assert isinstance(await fails("bybit", says(200, body)), ExchangeUnavailable)


async def test_an_error_nobody_has_heard_of_is_tried_again() -> None:
    body = {"retCode": 987654, "retMsg": "?", "result": {}, "time": 1}
    assert isinstance(await fails("bybit", says(200, body)), ExchangeUnavailable)


async def test_a_time_out_is_unavailable() -> None:
    async with opened("binance", timeout_ms=60) as desk:
        desk.venue.turns.append(hangs(desk.venue))
        with pytest.raises(ExchangeUnavailable, match="RequestTimeout"):
            await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert desk.permit.answers[0].outcome == "none"


async def test_a_venue_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        permit = NotedPermit()
        exchange = CcxtExchange("binance", permit, urls={"binance": address}, clock=SystemClock())
        with pytest.raises(ExchangeUnavailable, match="ClientConnectorError"):
            await exchange.server_ms()
        await exchange.close()
        assert [answer.outcome for answer in permit.answers] == ["none"]


async def test_a_host_that_is_not_the_given_one_is_never_asked() -> None:
    elsewhere = Venue("binance")
    async with serving(elsewhere) as other, opened("binance") as desk:
        desk.exchange._ccxt.urls["api"]["public"] = f"{other}/api/v3"
        with pytest.raises(ConfigError, match="COLLECTOR_EXCHANGE_URLS"):
            await desk.exchange.server_ms()
        assert not elsewhere.requests


async def test_one_failed_request_does_not_spoil_the_next() -> None:
    async with opened("binance") as desk:
        await load_quietly(desk.exchange, desk.venue, desk.address)
        desk.venue.turns.extend([says(429), says(500), says(200, text="<")])
        for _ in range(3):
            with pytest.raises((ExchangeBlocked, ExchangeUnavailable)):
                await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        page = await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)
        assert len(page.rows) == 3


def bomb(status: int = 200, megabytes: int = 100) -> Turn:
    """A turn that answers with spaces that are a thousandth of that size on the wire."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(b" " * 2**20) for _ in range(megabytes)) + packer.flush()

    async def turn(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=packed, headers={"Content-Encoding": "gzip"})

    return turn


async def test_an_answer_without_an_end_is_broken_off() -> None:
    async with opened("binance") as desk:
        for ask in (desk.exchange.load_markets, partial(bars, desk)):
            desk.venue.turns.append(bomb())
            tracemalloc.start()
            with pytest.raises(ExchangeUnavailable, match="more than 67,108,864 bytes"):
                await ask()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 80 * 2**20
        await bars(desk)
        desk.assert_one_token_a_request()


@pytest.mark.parametrize("value", ["{}", "[]", "1000", '"ab"', '"k":0'])
async def test_an_answer_of_too_many_values_is_not_parsed(value: str) -> None:
    text = ",".join([value] * 3_500_000)
    async with opened("binance") as desk:
        desk.venue.turns.append(says(200, text=f"{{{text}}}" if ":" in value else f"[{text}]"))
        with pytest.raises(ExchangeUnavailable, match=r"answered with [37],\d{3},\d{3} values"):
            await bars(desk)
        await bars(desk)


async def test_a_stop_counts_however_long_its_body_is() -> None:
    error = await fails("binance", bomb(429))
    assert isinstance(error, ExchangeBlocked)


async def test_answers_that_come_together_share_the_room() -> None:
    async with opened("binance") as desk:
        desk.venue.turns.extend(bomb(megabytes=40) for _ in range(4))
        tracemalloc.start()
        ends = await asyncio.gather(*(bars(desk) for _ in range(4)), return_exceptions=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert all(isinstance(end, ExchangeUnavailable) for end in ends)
        assert any("more than 67,108,864 bytes" in str(end) for end in ends)
        assert peak < 200 * 2**20
        await bars(desk)


@pytest.mark.parametrize(
    "turn",
    [
        says(200, {"not": "a list"}),
        says(200, text="<html>"),
        says(200, [[1, 2], 3]),
        says(400, {"code": -1121, "msg": "Invalid symbol."}),
        says(429, {"code": -1003, "msg": "Too many requests"}),
        says(503, text="busy"),
    ],
)
async def test_a_refused_answer_is_forgotten_at_once(turn: Turn) -> None:
    """Connections keep the context they were opened in, and workers seldom collect garbage."""
    async with opened("binance") as desk:
        desk.permit.after = no_report  # type: ignore[method-assign, assignment]
        gc.collect()
        gc.disable()
        try:
            for ask in (
                desk.exchange.load_markets,
                desk.exchange.fetch_tickers,
                partial(bars, desk),
            ):
                desk.venue.turns.append(turn)
                with pytest.raises(CollectorError):
                    await ask()
            await asyncio.sleep(0)  # The loop holds what it runs at this moment.
            assert [each for each in gc.get_objects() if keeps_an_answer(each)] == []
        finally:
            gc.enable()


def keeps_an_answer(each: object) -> bool:
    """A reply does, and so does a frame that an error went through."""
    if isinstance(each, Reply):
        return bool(each.body)
    return isinstance(each, FrameType) and each.f_code in (
        RequestHook.fetch2.__code__,
        CcxtExchange._visit.__wrapped__.__code__,  # type: ignore[attr-defined]
    )


async def bars(desk: Desk) -> None:
    await desk.exchange.fetch_bars("BTC/USDT", MINUTE, FIRST_BAR_MS, 3)


async def no_report(_: Answer) -> None:
    """The permit of other tests keeps what it was told."""


async def test_an_adapter_that_was_closed_sends_nothing() -> None:
    async with opened("binance") as desk:
        await desk.exchange.close()
        with pytest.raises(ExchangeUnavailable, match="closed"):
            await desk.exchange.server_ms()
        assert not desk.venue.requests
