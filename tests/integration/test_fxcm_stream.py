"""The price stream of FXCM: its heartbeat, whatever becomes of logins and of history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.jobs.states import State
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.streams.live_board import LiveBoard
from tests.support.fxcm.collecting import DAY, FIRST_MS, HOUR, FxcmCollecting
from tests.support.until import until
from workers.handlers import price_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.jobs.job import Job

START = FIRST_MS + 6 * DAY


@pytest.fixture(autouse=True)
def _open_market(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever day it is."""
    monkeypatch.setattr(price_stream, "calendar_of", lambda _: ALWAYS_OPEN)


async def stream(fx: FxcmCollecting) -> Job:
    params = {"symbols": ["EUR/USD"], "price_snap_interval_seconds": 0.2}
    return await fx.job("price_stream", symbol=None, frame=None, params=params)  # type: ignore[arg-type]


async def live(fx: FxcmCollecting, kind: str) -> dict[str, Any] | None:
    found = await LiveBoard(fx.database).page(kind=kind, exchange_id="fxcm")
    return found[0]["payload"] if found else None


async def beat(fx: FxcmCollecting, satisfied: Callable[[Any], bool], what: str) -> dict[str, Any]:
    """The first heartbeat that is so. Meanwhile prices come, if there is a session."""

    async def looked() -> dict[str, Any] | None:
        for session in list(fx.server.sessions.values()):
            prices = {"bid": 1.1, "ask": 1.2, "high": 1.2, "low": 1.1, "volume": 7}
            session.say("tick", instrument="EUR/USD", time_ms=SystemClock().wall_ms(), **prices)
        found = await live(fx, "heartbeat")
        return found if found is not None and satisfied(found) else None

    found: dict[str, Any] = await until(looked, what)
    return found


async def goes_on(fx: FxcmCollecting, state: str) -> None:
    """A few more heartbeats come in this state, each with the market's status."""
    for _ in range(3):
        at = (await beat(fx, lambda now: now["state"] == state, f"a heartbeat is {state}"))["ts"]
        after = await beat(fx, lambda now, at=at: now["ts"] > at, "there is another one")
        assert after["state"] == state
    status = await live(fx, "market_status")
    assert status is not None
    assert status["ts"] >= at


async def test_without_any_login_there_is_a_heartbeat_and_then_a_stream(
    fx: FxcmCollecting,
) -> None:
    fx.server.change(refuse="ORA-499: HTTP request failed")
    async with fx.worker():
        job = await stream(fx)
        await goes_on(fx, "DISCONNECTED")
        found = await beat(fx, lambda now: now["context"]["price_stream"]["last_error"], "why")
        assert "ORA-499" in found["context"]["price_stream"]["last_error"]
        assert found["context"]["diag"]["backoff"]["fxcm_history"]["active"]
        assert (await fx.queue.get(job.id)).state is State.RUNNING
        fx.server.change(refuse=None)
        await beat(fx, lambda now: now["state"] == "STREAM", "it streams")


async def test_a_refused_password_does_not_end_the_heartbeat(fx: FxcmCollecting) -> None:
    fx.server.change(refuse="Incorrect user name or password")
    async with fx.worker():
        job = await stream(fx)
        await goes_on(fx, "DISCONNECTED")
        assert (await fx.queue.get(job.id)).state is State.RUNNING
        assert fx.server.count("login") == 1, "a second one might lock the account"


async def test_ticks_do_not_make_up_for_history_that_fails(fx: FxcmCollecting) -> None:
    async with fx.worker():
        await stream(fx)
        await beat(fx, lambda now: now["state"] == "STREAM", "it streams")
        fx.server.change(history_error="QuotesManager error: gone")
        job = await fx.backfill(START, START + HOUR)
        await fx.server.seen("history", 3)
        await goes_on(fx, "DISCONNECTED")
        price = (await beat(fx, lambda _: True, "any"))["context"]["price_stream"]
        assert (price["state"], price["connection"]) == ("ok", "live")
        fx.server.change(history_error=None)
        await fx.until(job, lambda done: done.state is State.SUCCESS)
        await beat(fx, lambda now: now["state"] == "STREAM", "it streams again")


async def test_a_stream_hears_again_after_a_reconnection_inside_the_sdk(
    fx: FxcmCollecting,
) -> None:
    async with fx.worker():
        await stream(fx)
        await beat(fx, lambda now: now["state"] == "STREAM", "it streams")
        fx.server.say("status", status="RECONNECTING")
        await beat(fx, lambda now: now["state"] == "DISCONNECTED", "the loss is seen")
        fx.server.say("status", status="CONNECTED", ready_after=0)
        await beat(fx, lambda now: now["state"] == "STREAM", "it streams again")
    assert fx.server.count("login") == 1
