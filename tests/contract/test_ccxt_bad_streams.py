"""ccxt's own websocket classes at a local venue that misbehaves, in every way that was seen."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import ExchangeBlocked, ExchangeUnavailable, RateLimited
from collector.exchanges.ccxt import handshake
from collector.exchanges.ccxt.catalog import streaming_class
from collector.exchanges.ccxt.ticks import LARGEST_MESSAGE, StreamClient
from collector.streams.states import Connection
from tests.support.ccxt_streams import SECONDS, Line, socket, streaming, tick
from tests.support.ccxt_venue import NotedPermit, hangs, says
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

EXCHANGES = ("binance", "simulated")
"""The simulated exchange has an adapter of its own, which opens its websocket in the same way."""


async def test_the_last_price_of_every_symbol_in_a_burst_is_published() -> None:
    line = Line()
    async with streaming(socket(line)) as stream:
        for burst, size in enumerate((2, 3, 7, 30, 100, 300, 2, 2, 3, 3)):
            last = {}
            messages = []
            for number in range(size):
                symbol = ("BTC/USDT", "ETH/BTC")[number % 2]
                last[symbol] = 1 + burst + number / 1000
                messages.append(tick(symbol, last[symbol]))
            await line.send(*messages)
            await stream.shows(last["BTC/USDT"], last["ETH/BTC"])


def okx_tick(symbol: str, price: float) -> str:
    offer = [[f"{price}", "1", "0", "1"]]
    book = {"asks": offer, "bids": offer, "ts": f"{round(time.time() * 1000)}", "seqId": 1}
    arg = {"channel": "bbo-tbt", "instId": symbol.replace("/", "-")}
    return json.dumps({"arg": arg, "data": [book]})


def kraken_tick(symbol: str, price: float) -> str:
    ticker = {"symbol": symbol, "bid": price, "bid_qty": 1, "ask": price, "ask_qty": 1}
    return json.dumps({"channel": "ticker", "type": "update", "data": [ticker]})


@pytest.mark.parametrize(
    ("exchange_id", "symbols", "write"),
    [
        ("okx", ("BTC/USDT", "LUNA/USDT"), okx_tick),
        # ccxt keeps its best offers among the tickers.
        ("kraken", ("BTC/USD", "EOS/USD"), kraken_tick),
    ],
)
async def test_bursts_of_other_venues_are_read_to_their_end(
    exchange_id: str, symbols: tuple[str, str], write: Callable[[str, float], str]
) -> None:
    line = Line()
    async with streaming(socket(line), exchange_id=exchange_id, symbols=symbols) as stream:
        for burst in (1.0, 2.0, 3.0):
            prices = [burst + number / 100 for number in range(50)]
            await line.send(*(write(symbols[n % 2], price) for n, price in enumerate(prices)))
            last = {symbols[0]: prices[-2], symbols[1]: prices[-1]}
            await until(lambda last=last: stream.publish() == last, f"published {last}", SECONDS)


@pytest.mark.parametrize(
    ("message", "errors"),
    [
        ("[]", 1),
        (b"\xff\xfe\x00", 1),
        ('{"e":"bookTicker","s":"BTC', 1),
        ("null", 0),  # ccxt reads these two as text that is not for it.
        ("42", 0),
    ],
)
async def test_a_message_that_cannot_be_read_is_counted_and_the_next_one_is_read(
    message: str | bytes, errors: int
) -> None:
    line = Line()
    async with streaming(socket(line)) as stream:
        await line.send(tick("BTC/USDT", 1.0))
        await stream.shows(1.0)
        await line.send(message, tick("BTC/USDT", 2.0))
        await stream.shows(2.0)
        assert stream.feed.errors == errors
        assert stream.feed.connection is Connection.LIVE
        assert stream.connections == 1


@pytest.mark.parametrize("flag", ["gunzip", "inflate"])
async def test_a_message_that_grows_without_end_is_not_unpacked(
    flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some venues compress their messages; 10 MB may become 10 GB."""
    monkeypatch.setattr(StreamClient, flag, True)
    bits = {"gunzip": 31, "inflate": -15}[flag]

    def packed(text: str) -> bytes:
        packer = zlib.compressobj(wbits=bits)
        return packer.compress(text.encode()) + packer.flush()

    line = Line()
    async with streaming(socket(line)) as stream:
        await line.send(packed(tick("BTC/USDT", 1.0)))
        await stream.shows(1.0)
        bomb = packed("[" + " " * 10 * LARGEST_MESSAGE)
        tracemalloc.start()
        await line.send(bomb, packed(tick("BTC/USDT", 2.0)))
        await stream.shows(2.0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert stream.feed.errors == 1
        assert peak < 3 * LARGEST_MESSAGE


async def test_a_connection_that_breaks_in_an_unknown_way_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = Line()
    async with streaming(socket(line)) as stream:
        await line.send(tick("BTC/USDT", 1.0))
        await stream.shows(1.0)

        async def broken(_: Any) -> Any:
            raise RuntimeError("the connection is broken")

        monkeypatch.setattr(StreamClient, "receive", broken)
        await line.send(tick("BTC/USDT", 2.0))
        await until(lambda: stream.pauses, "the end was noticed", SECONDS)
        assert stream.feed.connection is Connection.BROKEN


async def test_a_flood_leaves_turns_to_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    ccxt = streaming_class("binance")
    read = ccxt.handle_message
    handled, most_in_a_round = 0, 0

    def slowly(self: Any, client: Any, message: Any) -> None:
        nonlocal handled
        began = time.perf_counter()
        while time.perf_counter() - began < 0.001:
            pass
        handled += 1
        read(self, client, message)

    async def watch_rounds() -> None:
        nonlocal most_in_a_round
        while True:
            before = handled
            await asyncio.sleep(0)
            most_in_a_round = max(most_in_a_round, handled - before)

    monkeypatch.setattr(ccxt, "handle_message", slowly)
    line = Line()
    async with streaming(socket(line)) as stream:
        watching = asyncio.create_task(watch_rounds())
        await line.send(*(tick("BTC/USDT", number) for number in range(1, 2_001)))
        await stream.shows(2_000.0)
        watching.cancel()
        # A message takes a millisecond: in one round of the loop only a few may be handled.
        assert most_in_a_round <= 10
        assert stream.prices.totals.received == 2_000
        assert stream.feed.dropped == 0


async def test_a_venue_that_closes_after_its_first_message_meets_growing_pauses() -> None:
    async def one_message(response: web.WebSocketResponse) -> None:
        await response.send_str(tick("BTC/USDT", 1.0))
        await response.close()

    async with streaming(*[socket(one_message)] * 5, rests=4) as stream:
        await until(lambda: len(stream.pauses) == 5, "five connections have ended", SECONDS)
        assert stream.pauses == [1.0, 2.0, 4.0, 8.0, 16.0]
        assert stream.connections == 5
        assert stream.prices.totals.received == 5


async def test_a_closed_connection_is_noticed_while_messages_before_it_are_read() -> None:
    async def messages_and_the_end(response: web.WebSocketResponse) -> None:
        for number in range(1, 51):
            await response.send_str(tick("BTC/USDT", number))
        await response.close()

    async with streaming(socket(messages_and_the_end)) as stream:
        await until(lambda: stream.pauses, "the end was noticed", SECONDS)
        assert stream.publish() == {"BTC/USDT": 50.0}
        assert stream.connections == 1


async def test_a_connection_that_the_venue_drops_is_noticed() -> None:
    async def dropped(response: web.WebSocketResponse) -> None:
        await response.send_str(tick("BTC/USDT", 1.0))
        assert response._req is not None
        assert response._req.transport is not None
        response._req.transport.abort()

    async with streaming(socket(dropped)) as stream:
        await until(lambda: stream.pauses, "the end was noticed", SECONDS)
        assert stream.feed.connection is Connection.BROKEN


async def test_a_silent_connection_that_the_venue_closes_is_noticed() -> None:
    async def silent(response: web.WebSocketResponse) -> None:
        await response.close()

    async with streaming(socket(silent)) as stream:
        await until(lambda: stream.pauses, "the end was noticed", SECONDS)
        assert stream.feed.connection is Connection.BROKEN
        assert stream.prices.totals.received == 0


@pytest.mark.parametrize("exchange_id", EXCHANGES)
async def test_a_handshake_that_is_never_answered_ends(
    exchange_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "HANDSHAKE_SECONDS", 0.2)

    async def never(request: web.Request) -> web.StreamResponse:
        return await hangs(stream.desk.venue)(request)

    async with streaming(never, exchange_id=exchange_id) as stream:
        await until(lambda: stream.pauses, "the handshake was given up", SECONDS)
        [outcome] = stream.outcomes
        assert outcome.health == "bad"
        assert isinstance(outcome.error, ExchangeUnavailable)


async def test_a_stream_that_ends_takes_an_unanswered_handshake_along() -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        return await hangs(stream.desk.venue)(request)

    async with streaming(never) as stream:
        await until(lambda: stream.connections, "the handshake has come", SECONDS)
    [outcome] = stream.outcomes
    assert outcome.health == "unknown"


@pytest.mark.parametrize("exchange_id", EXCHANGES)
@pytest.mark.parametrize("status", [429, 418])
async def test_a_stop_at_the_handshake_is_reported_with_its_time(
    status: int, exchange_id: str
) -> None:
    refusal = says(status, headers={"Retry-After": "30"})
    async with streaming(refusal, exchange_id=exchange_id) as stream:
        await until(lambda: stream.pauses, "the stop was heard", SECONDS)
        assert stream.pauses == [30.0]
        [outcome] = stream.outcomes
        assert isinstance(outcome.error, ExchangeBlocked)
        assert outcome.error.retry_after_ms == 30_000
        assert outcome.error.ban == (status == 418)
        assert outcome.health == "unknown"
        assert stream.connections == 1


async def test_a_refusal_at_the_handshake_is_waited_for_as_long_as_it_says() -> None:
    async with streaming(says(503, headers={"Retry-After": "45"})) as stream:
        await until(lambda: stream.pauses, "the refusal was heard", SECONDS)
        assert stream.pauses == [45.0]
        [outcome] = stream.outcomes
        assert outcome.health == "bad"


async def test_a_good_outcome_is_reported_when_the_connection_stands() -> None:
    line, answer = Line(), asyncio.Event()

    async def hesitates(request: web.Request) -> web.StreamResponse:
        await answer.wait()
        return await socket(line)(request)

    async with streaming(hesitates) as stream:
        await until(lambda: stream.connections, "the handshake has come", SECONDS)
        assert stream.outcomes == []
        answer.set()
        await line.send(tick("BTC/USDT", 1.0))
        await stream.shows(1.0)
        [outcome] = stream.outcomes
        assert (outcome.health, outcome.error) == ("good", None)


async def test_without_a_token_no_connection_is_opened() -> None:
    refusing = NotedPermit(grants=0, deny=RateLimited("binance", 7_000, "blocked"))
    async with streaming(permit=refusing) as stream:
        await until(lambda: stream.pauses, "the refusal was heard", SECONDS)
        assert stream.pauses == [7.0]
        assert stream.connections == 0


@pytest.mark.parametrize("seconds", [0.5, 11.0, 3_600.0])
async def test_an_older_tick_replaces_none(seconds: float) -> None:
    now = time.time()
    line = Line()
    async with streaming(socket(line)) as stream:
        await line.send(
            tick("BTC/USDT", 2.0, now - 1),
            tick("BTC/USDT", 1.0, now - 1 - seconds),
            tick("ETH/BTC", 3.0, now - 1),
        )
        await stream.shows(2.0, 3.0)
        assert stream.prices.totals.errors == 1
        assert stream.prices.tick_ts == pytest.approx(now - 1, abs=0.001)
