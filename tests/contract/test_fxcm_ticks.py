"""FXCM's ticks behind the port, over the honest stand-in of its SDK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import ExchangeUnavailable
from collector.exchanges.fxcm.ticks import FxcmTicks
from collector.exchanges.ticks import PriceTick, TickRequest
from tests.support.fxcm.server import NOON_MS

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


async def test_reading_the_offers_leaves_the_ticks_alone(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    assert client.subscribed == ()
    source = FxcmTicks(LoggedIn(client), WANTED)
    await source.connect()
    assert client.subscribed == ("EUR/USD",)
    assert len(await client.subscribe(client.subscribed)) > 1
    fxcm.server.tick("EUR/USD", 1.1, 1.2)
    assert (await next_tick(aiter(source))).bid == 1.1
