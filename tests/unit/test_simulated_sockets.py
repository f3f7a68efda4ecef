"""The simulated exchange's websockets: Binance's streams, with prices of its own bars."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from collector.simulated.bars import MINUTE
from collector.simulated.faults.answers import ServerError
from collector.simulated.faults.catalogue import parse_faults
from collector.simulated.faults.socket import SocketDisconnect, SocketSilence
from collector.simulated.server import SimulatedExchange
from collector.simulated.stream_messages import subscription
from collector.simulated.tick_tape import TickTape
from collector.simulated.view import ClientView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOON_MS = 1_735_732_800_000


@pytest.fixture
async def venue() -> AsyncIterator[SimulatedExchange]:
    async with SimulatedExchange(ticks_per_second=50) as venue:
        yield venue


@asynccontextmanager
async def connected(venue: SimulatedExchange, path: str) -> AsyncIterator[Any]:
    async with aiohttp.ClientSession() as session, session.ws_connect(venue.url + path) as socket:
        yield socket


async def received(socket: Any) -> Any:
    async with asyncio.timeout(120):
        return await socket.receive_json()


async def test_a_combined_stream_names_each_message(venue: SimulatedExchange) -> None:
    async with connected(venue, "/stream?streams=btcusdt@bookTicker") as socket:
        message = await received(socket)
    assert message["stream"] == "btcusdt@bookTicker"
    data = message["data"]
    assert (data["e"], data["s"]) == ("bookTicker", "BTCUSDT")
    assert float(data["b"]) < float(data["a"])


async def test_streams_come_and_go_while_a_connection_is_open(venue: SimulatedExchange) -> None:
    async with connected(venue, "/ws") as socket:
        names = ["ethusdt@trade", "ethusdt@ticker", "nosuch@ticker", "ethusdt@kline_1m"]
        await socket.send_json({"method": "SUBSCRIBE", "params": names, "id": 7})
        assert await received(socket) == {"result": None, "id": 7}
        kinds = set()
        while not kinds >= {"24hrTicker", "kline"}:  # Trades come when one is due.
            kinds.add((await received(socket))["e"])
        await socket.send_json({"method": "LIST_SUBSCRIPTIONS", "id": 8})
        while "result" not in (answer := await received(socket)):
            pass
        assert sorted(answer["result"]) == ["ethusdt@kline_1m", "ethusdt@ticker", "ethusdt@trade"]
        await socket.send_json({"method": "UNSUBSCRIBE", "params": names, "id": 9})
        while "result" not in await received(socket):
            pass
    assert venue.sockets.counts.opened == 1


async def test_a_request_that_is_no_websocket_is_told_so(venue: SimulatedExchange) -> None:
    async with aiohttp.ClientSession() as session, session.get(venue.url + "/ws") as answer:
        assert answer.status == 426


async def test_a_disconnect_resets_the_connection(venue: SimulatedExchange) -> None:
    async with connected(venue, "/ws/btcusdt@bookTicker") as socket:
        await received(socket)
        venue.faults.add(SocketDisconnect(count=1))
        async with asyncio.timeout(120):
            while (await socket.receive()).type is aiohttp.WSMsgType.TEXT:
                pass
    assert venue.faults.listing()[0]["struck"] == 1


async def test_a_silent_socket_stays_open_and_other_faults_pass_it_by(
    venue: SimulatedExchange,
) -> None:
    venue.faults.add(SocketSilence(), ServerError(count=1))
    async with connected(venue, "/ws/btcusdt@bookTicker") as socket:
        while not venue.faults.listing()[0]["struck"]:
            await asyncio.sleep(0.01)
        await socket.send_json({"method": "LIST_SUBSCRIPTIONS", "id": 1})
        assert (await received(socket))["result"] == ["btcusdt@bookTicker"]
    assert venue.sockets.counts.sent == 0
    assert venue.faults.listing()[1]["struck"] == 0  # That one is for requests.


def test_socket_faults_are_written_as_the_others() -> None:
    assert parse_faults({"kind": "socket_disconnect", "count": 2}) == [SocketDisconnect(count=2)]


def test_prices_are_those_of_the_bars() -> None:
    truth = SimulatedExchange().truth
    series = truth.series("BTCUSDT")
    view = ClientView(truth)
    tape, again = TickTape(series), TickTape(series)
    table = truth.minutes(series, NOON_MS, NOON_MS + MINUTE.ms).table
    opened, high, low, closed = (int(table[row, 0]) for row in (1, 2, 3, 4))
    prices = [tape.price(view, NOON_MS + ms) for ms in range(0, MINUTE.ms, 250)]
    assert prices[0] == opened
    assert all(price is not None and low <= price <= high for price in prices)
    assert tape.price(view, NOON_MS + MINUTE.ms - 1) == closed
    assert prices == [again.price(view, NOON_MS + ms) for ms in range(0, MINUTE.ms, 250)]


def test_every_trade_is_sent_once_and_every_bar_is_closed_once() -> None:
    truth = SimulatedExchange().truth
    view = ClientView(truth)
    trades = subscription("btcusdt@trade", truth, NOON_MS - 1)
    klines = subscription("btcusdt@kline_1m", truth, NOON_MS)
    assert trades is not None
    assert klines is not None
    sent, closed = [], []
    for now_ms in range(NOON_MS, NOON_MS + 2 * MINUTE.ms + 1, 700):
        sent += trades.messages(view, now_ms, 0)
        closed += [each for each in klines.messages(view, now_ms, 0) if b'"x":true' in each]
    series = truth.series("BTCUSDT")
    until_ms = now_ms
    expected = sum(
        len(view.trades(series, minute, until_ms))
        for minute in (NOON_MS, NOON_MS + MINUTE.ms, NOON_MS + 2 * MINUTE.ms)
        if minute <= until_ms
    )
    assert len(sent) == expected
    assert len(closed) == (until_ms - NOON_MS) // MINUTE.ms
