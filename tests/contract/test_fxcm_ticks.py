"""FXCM's ticks behind the port, over the honest stand-in of its SDK."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import ExchangeUnavailable
from collector.exchanges.fxcm.ticks import FxcmTicks
from collector.exchanges.ticks import PriceTick, TickRequest
from tests.support.fxcm.server import NOON_MS
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.exchanges.fxcm.client import FxcmClient
    from tests.support.fxcm.fixtures import Desk

WANTED = TickRequest(("EUR/USD",))


class LoggedIn:
    """Holds a session that is there already."""

    def __init__(self, client: FxcmClient) -> None:
        self._client = client

    async def client(self) -> FxcmClient:
        return self._client


async def next_tick(events: AsyncIterator[Any]) -> PriceTick:
    async with asyncio.timeout(120):
        tick: PriceTick = await anext(events)
    return tick


async def test_a_tick_has_the_servers_time_and_the_time_it_was_received(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    source = FxcmTicks(LoggedIn(client), WANTED)
    await source.connect()
    events = aiter(source)
    fxcm.server.tick("EUR/USD", 1.1, 1.2)
    tick = await next_tick(events)
    assert (tick.symbol, tick.bid, tick.ask, tick.at) == ("EUR/USD", 1.1, 1.2, NOON_MS / 1000)
    assert tick.received > tick.at
    prices = {"bid": None, "ask": 1.2, "high": 1.0, "low": 1.0, "volume": 1}
    fxcm.server.say("tick", instrument="EUR/USD", time_ms=NOON_MS, **prices)
    fxcm.server.tick("EUR/USD", 1.3, 1.4)
    assert (await next_tick(events)).bid == 1.3
    assert source.counts.errors == 1
    await source.close()
    with pytest.raises(ExchangeUnavailable):
        await next_tick(events)
    assert client.status == "CONNECTED"  # The session is not the source's to end.


async def test_a_lost_session_ends_the_source(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    source = FxcmTicks(LoggedIn(client), WANTED)
    await source.connect()
    await client.logout()
    with pytest.raises(ExchangeUnavailable):
        await next_tick(aiter(source))


async def test_a_reconnection_inside_the_sdk_ends_the_source_and_the_next_one_hears(
    fxcm: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    client = await fxcm.logged_in()
    first = FxcmTicks(LoggedIn(client), WANTED)
    await first.connect()
    fxcm.server.say("status", status="RECONNECTING")
    await until(lambda: client.status == "RECONNECTING", "the SDK reconnects")
    with pytest.raises(ExchangeUnavailable, match="the connection has ended"):
        await next_tick(aiter(first))
    with pytest.raises(ExchangeUnavailable, match="reconnecting"):
        await FxcmTicks(LoggedIn(client), WANTED).connect()
    fxcm.server.say("status", status="CONNECTED", ready_after=0)
    await until(lambda: client.status == "CONNECTED", "it is connected again")
    second = FxcmTicks(LoggedIn(client), WANTED)
    with caplog.at_level(logging.INFO):
        await second.connect()
    assert "fxcm_offers_subscribed" in caplog.text
    fxcm.server.tick("EUR/USD", 1.1, 1.2)
    assert (await next_tick(aiter(second))).bid == 1.1
    assert fxcm.server.count("login") == 1


async def test_a_source_that_is_opened_anew_hears_although_the_one_before_was_deaf(
    fxcm: Desk,
) -> None:
    """A silent stream is renewed: nothing has been heard of a reconnection."""
    client = await fxcm.logged_in()
    first = FxcmTicks(LoggedIn(client), WANTED)
    await first.connect()
    fxcm.server.say("deafen")
    await fxcm.server.seen("deafened")
    await first.close()
    second = FxcmTicks(LoggedIn(client), WANTED)
    await second.connect()
    fxcm.server.tick("EUR/USD", 1.1, 1.2)
    assert (await next_tick(aiter(second))).bid == 1.1


async def test_reading_the_offers_leaves_the_ticks_alone(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    source = FxcmTicks(LoggedIn(client), WANTED)
    await source.connect()
    assert len(await client.offers()) > 1
    fxcm.server.tick("USD/JPY", 150.0, 150.1)
    fxcm.server.tick("EUR/USD", 1.1, 1.2)
    assert (await next_tick(aiter(source))).bid == 1.1
