"""The states of a stream, its heartbeat and its market status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector.exchanges.exclusive import SessionState
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.market.calendar.fx import FX
from collector.market.moment import epoch_ms
from collector.streams.heartbeat import (
    HeartbeatContext,
    StreamFacts,
    heartbeat,
    market_status,
    price_stream,
)
from collector.streams.last_prices import TickTotals
from collector.streams.states import (
    Connection,
    PriceState,
    Since,
    diagnosis,
    price_state,
)
from collector.streams.tick_health import TickHealthMonitor

LIVE = Connection.LIVE


@pytest.mark.parametrize(
    ("connection", "silence", "is_open", "state"),
    [
        (LIVE, 0.5, True, "STREAM"),
        (LIVE, 31.0, True, "IDLE"),
        (LIVE, 61.0, True, "RECOVERING"),
        (LIVE, 61.0, False, "IDLE"),
        (LIVE, 0.5, False, "IDLE"),
        (Connection.CONNECTING, None, True, "RECOVERING"),
        (Connection.CONNECTED, 2.0, True, "RECOVERING"),
        (Connection.BROKEN, 2.0, True, "DISCONNECTED"),
        (Connection.BROKEN, None, False, "DISCONNECTED"),
        (Connection.CLOSED, 0.1, True, "DISCONNECTED"),
    ],
)
def test_a_stream_is_in_one_of_four_states(
    connection: Connection, silence: float | None, is_open: bool, state: str
) -> None:
    assert diagnosis(connection, silence, is_open=is_open) == state


@pytest.mark.parametrize(
    ("session", "connection", "is_open", "state"),
    [
        (None, LIVE, True, "STREAM"),
        ("STREAM", LIVE, True, "STREAM"),
        ("RECOVERING", LIVE, True, "RECOVERING"),
        ("DISCONNECTED", LIVE, True, "DISCONNECTED"),
        ("DISCONNECTED", Connection.CONNECTING, False, "DISCONNECTED"),
        ("IDLE", LIVE, False, "IDLE"),
        ("STREAM", Connection.BROKEN, True, "DISCONNECTED"),
    ],
)
def test_a_state_is_that_of_the_ticks_and_of_the_session_for_history(
    session: str | None, connection: Connection, is_open: bool, state: str
) -> None:
    known = None if session is None else SessionState(session)
    assert diagnosis(connection, 0.5, is_open=is_open, session=known) == state


def test_a_state_keeps_the_moment_it_began() -> None:
    since = Since(SessionState.RECOVERING, 1.0).then(SessionState.STREAM, 2.0)
    assert since.then(SessionState.STREAM, 3.0) == Since(SessionState.STREAM, 2.0)
    assert since.then(SessionState.IDLE, 4.0).at == 4.0


def test_prices_do_not_flicker_between_the_two_limits() -> None:
    state = PriceState.WAITING
    seen = []
    for silence in (None, 1.0, 15.0, 29.0, 31.0, 20.0, 11.0, 9.0):
        state = price_state(state, silence)
        seen.append(state.value)
    assert seen == ["waiting", "ok", "ok", "ok", "stale", "stale", "stale", "ok"]
    assert price_state(state, 1.0, stopped=True) == "stopped"


def facts(now: float) -> StreamFacts:
    return StreamFacts(
        exchange_id="fxcm",
        fence=7,
        now=now,
        diagnosis=Since(SessionState.STREAM, 90.0),
        price_state=PriceState.OK,
        connection=LIVE,
        health=TickHealthMonitor().observe(1.5, is_open=True),
        silence=1.5,
        snap_ts=98.0,
        tick_ts=97.0,
        interval_seconds=3.0,
        totals=TickTotals(received=10, snapped=4, superseded=5, errors=1),
        unreadable=2,
        dropped=3,
    )


def test_a_heartbeat_is_whole_and_absent_parts_are_null() -> None:
    message = heartbeat(facts(100.0), HeartbeatContext(history={"calls_60s": 1}))
    payload = dict(message.payload)
    context = payload.pop("context")
    assert payload == {
        "state": "STREAM",
        "ts": 100.0,
        "last_change_ts": 90.0,
        "fence": 7,
        "price_snap_ts": 98.0,
        "tick_silence_seconds": 1.5,
    }
    assert context["history"] == {"calls_60s": 1}
    assert context["diag"] is None
    assert context["supervisor"] is None
    stream = context["price_stream"]
    assert stream["channel"] == "fxcm:price_tik"
    assert stream["tick_errors"] == 3
    assert stream["queue"] == {
        "waiting": 0,
        "received": 10,
        "snapped": 4,
        "superseded": 5,
        "dropped": 3,
    }
    assert stream["adaptive_poll"] == {
        "current_m1": 2.0,
        "current_m5": 3.0,
        "target_reason": "ticks",
        "tick_silence_seconds": 1.5,
    }


def test_a_cadence_that_no_job_polls_by_is_not_shown() -> None:
    known = replace(facts(100.0), is_polled=False)
    assert price_stream(known)["adaptive_poll"] is None


def test_a_heartbeat_shows_the_pauses_of_every_part() -> None:
    redis, fxcm = {"active": False}, {"active": True}
    context = HeartbeatContext(diag={"backoff": {"redis": redis}}, supervisor={"depth": 0})
    joined = context.beside({"calls_60s": 2}, {"fxcm_history": fxcm})
    assert joined.diag == {"backoff": {"fxcm_history": fxcm, "redis": redis}}
    assert joined.history == {"calls_60s": 2}
    assert joined.supervisor == {"depth": 0}
    assert HeartbeatContext().beside(None, {}) == HeartbeatContext()


def test_a_closed_market_says_when_it_opens() -> None:
    saturday = epoch_ms("2025-12-06T22:00:00Z") / 1000
    payload = market_status(facts(saturday), FX).payload
    assert payload == {
        "state": "closed",
        "next_open_seconds": 86_400.0,
        "ts": saturday,
        "price_snap_ts": 98.0,
        "tick_silence_seconds": 1.5,
    }
    assert market_status(facts(saturday), ALWAYS_OPEN).payload["state"] == "open"
