"""FXCM's session behind the adapter: logins, pauses after failures, states."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from collector.errors import (
    ConfigError,
    ExchangeUnavailable,
    KeyRefused,
    SessionNotHeld,
)
from collector.exchanges.fxcm.failures import SessionLost, SidecarLost
from collector.exchanges.fxcm.process import Timeouts
from collector.exchanges.ticks import TickRequest
from collector.market.calendar.fx import FX
from collector.market.timeframe import Timeframe
from tests.support.fxcm.adapter import adapter
from tests.support.fxcm.living import gone
from tests.support.fxcm.server import NOON_MS
from tests.support.until import until

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


async def test_after_a_failed_login_nobody_tries_again_before_the_pause_is_over(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    fxcm_server.change(refuse="ORA-499: HTTP request failed")
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        with pytest.raises(ExchangeUnavailable):
            await desk.markets()
        with pytest.raises(ExchangeUnavailable) as again:
            await desk.markets()
        assert fxcm_server.count("login") == 1
        assert 4_000 <= (again.value.retry_after_ms or 0) <= 6_000
        assert desk.right.states == ["DISCONNECTED"]
        fxcm_server.change(refuse=None)
        desk.clock.advance(6)
        await desk.markets()
        assert desk.right.states == ["DISCONNECTED", "RECOVERING"]


async def test_a_password_that_is_refused_is_not_tried_by_every_job(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    fxcm_server.change(refuse="Incorrect user name or password")
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        for _ in range(3):
            with pytest.raises(KeyRefused):
                await desk.markets()
            desk.clock.advance(200)  # No pause makes it right: it might lock the account.
        assert fxcm_server.count("login") == 1
        fxcm_server.change(refuse=None)
        secret = tmp_path / "secrets" / "fxcm"
        secret.write_text("another")
        await desk.markets()
        assert fxcm_server.count("login") == 2


async def test_without_the_right_to_the_session_nobody_logs_in(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        desk.right.seconds = 0.0
        with pytest.raises(SessionNotHeld):
            await desk.markets()
        assert not fxcm_server.count("login")
        desk.right.seconds = 60.0
        await desk.markets()
        assert fxcm_server.count("login") == 1


async def test_a_right_that_passes_ends_the_session_and_a_new_one_logs_in_again(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        desk.right.seconds = 3.0
        await desk.markets()
        [login] = [entry for entry in fxcm_server.journal if entry.what == "login"]
        desk.right.seconds = 0.0
        await gone(login.pid)
        await fxcm_server.seen("logout")
        desk.right.seconds = 60.0
        await desk.markets()
        assert (fxcm_server.count("login"), fxcm_server.second_logins) == (2, 0)


async def test_a_call_that_hangs_is_ended_and_the_next_one_logs_in_again(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    timeouts = Timeouts()
    async with adapter(fxcm_server, fxcm_python, tmp_path, timeouts=timeouts) as desk:
        await desk.markets()
        fxcm_server.change(hold_history=True)
        # Short for the call that hangs, and long again for the one that is only slow.
        object.__setattr__(timeouts, "history", 0.2)
        with pytest.raises(SidecarLost):
            await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        object.__setattr__(timeouts, "history", 60.0)
        fxcm_server.held.clear()
        fxcm_server.change(hold_history=False)
        await until(lambda: not fxcm_server.sessions, "the server has noticed")
        desk.clock.advance(10)
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        assert desk.right.states == ["RECOVERING", "DISCONNECTED", "RECOVERING", "STREAM"]
        assert [answer.outcome for answer in desk.permit.answers] == ["fxcm_sidecar_lost", "ok"]
        assert (fxcm_server.count("login"), fxcm_server.second_logins) == (2, 0)


async def test_a_lost_session_recovers(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        fxcm_server.say("status", status="SESSION_LOST", ready_after=0)
        await until(lambda: desk.right.states[-1] == "DISCONNECTED", "the loss is reported")
        assert "SESSION_LOST" in desk.right.reports[-1][1]
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        assert desk.right.states == [
            *("RECOVERING", "STREAM"),
            *("DISCONNECTED", "RECOVERING", "STREAM"),
        ]


async def test_an_sdk_that_reconnects_by_itself_is_disconnected_meanwhile(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        fxcm_server.say("status", status="RECONNECTING")
        fxcm_server.say("status", status="CONNECTED", ready_after=0)
        await until(lambda: desk.right.states[-1] == "RECOVERING", "it is connected again")
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        assert desk.right.states == [
            *("RECOVERING", "STREAM"),
            *("DISCONNECTED", "RECOVERING", "STREAM"),
        ]
        assert fxcm_server.count("login") == 1


async def test_the_close_and_the_opening_of_the_market_are_states(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    friday_ms = FX.next_close(NOON_MS)
    assert friday_ms is not None
    async with adapter(fxcm_server, fxcm_python, tmp_path, now_ms=friday_ms - MINUTE) as desk:
        await desk.markets()
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        desk.clock.advance(120)
        await until(lambda: desk.right.states[-1] == "IDLE", "the close is noticed")
        desk.clock.advance(3 * 86_400)
        await until(lambda: desk.right.states[-1] == "RECOVERING", "the opening is noticed")
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        assert desk.right.states == ["RECOVERING", "STREAM", "IDLE", "RECOVERING", "STREAM"]


async def test_a_session_lost_in_a_call_is_the_calls_error(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        fxcm_server.change(hold_history=True)
        asking = asyncio.create_task(desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5))
        await fxcm_server.seen("history")
        fxcm_server.say("status", status="SESSION_LOST", ready_after=0)
        with pytest.raises(SessionLost):
            await asking


async def test_without_a_user_it_says_what_to_set(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path, user=None) as desk:
        with pytest.raises(ConfigError, match="COLLECTOR_FXCM__USER"):
            await desk.markets()


async def test_ticks_are_data_too_and_do_not_make_up_for_failed_history(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        source = desk.exchange.ticks(TickRequest(("EUR/USD",)))
        await source.connect()
        fxcm_server.tick("EUR/USD", 1.1, 1.2)
        await until(lambda: desk.right.states[-1] == "STREAM", "the tick counts as data")
        fxcm_server.change(history_error="QuotesManager error")
        with pytest.raises(ExchangeUnavailable):
            await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        seen = fxcm_server.count("history")
        for _ in range(3):
            fxcm_server.tick("EUR/USD", 1.1, 1.2)
        fxcm_server.change(history_error=None)
        desk.clock.advance(10)
        assert desk.right.states[-1] == "DISCONNECTED"
        await desk.exchange.fetch_bars("EUR/USD", M1, NOON_MS - HOUR, 5)
        assert fxcm_server.count("history") == seen + 1
        assert desk.right.states == ["RECOVERING", "STREAM", "DISCONNECTED", "STREAM"]
