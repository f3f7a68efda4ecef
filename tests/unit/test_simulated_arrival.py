"""Requests that are late on their way: noted and counted when they arrive, not when they left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest

from collector.clock import ManualClock
from collector.simulated.faults.answers import Gateway
from collector.simulated.faults.arrival import LateArrival
from collector.simulated.faults.book import FaultBook
from collector.simulated.request import PublicRequest
from collector.simulated.request_limit import Limit
from collector.simulated.road import Road
from collector.simulated.server import SimulatedExchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.simulated.faults.record import Fault

PING = "/api/v3/ping"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def exchange(clock: ManualClock) -> AsyncIterator[SimulatedExchange]:
    limit = Limit(requests=1, period_ms=60_000, enforce=True)
    async with SimulatedExchange(clock=clock, limit=limit) as exchange:
        yield exchange


@pytest.fixture
async def http(exchange: SimulatedExchange) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(exchange.url) as session:
        yield session


async def leaves(exchange: SimulatedExchange, http: aiohttp.ClientSession) -> asyncio.Task[int]:
    """A request that has left, held up for ten seconds."""

    async def status() -> int:
        async with http.get(PING) as answer:
            return answer.status

    exchange.faults.add(LateArrival(ms=10_000, count=1))
    task = asyncio.create_task(status())
    async with asyncio.timeout(120):
        while exchange.faults.listing()[-1]["struck"] == 0:
            await asyncio.sleep(0)
    return task


def lateness(*faults: Fault, requests: int = 300) -> list[float]:
    book = FaultBook(7, ManualClock().monotonic)
    book.add(*faults)
    return [sum(book.hold_up(PublicRequest(number, "ping", 0))) for number in range(requests)]


def test_lateness_is_fixed_plus_jitter_and_adds_up() -> None:
    late = lateness(LateArrival(ms=40, jitter_ms=60), LateArrival(ms=5))
    assert all(45 <= ms < 105 for ms in late)
    assert len(set(late)) > 290


def test_a_tail_strikes_now_and_then() -> None:
    late = lateness(LateArrival(ms=250, probability=0.1))
    assert set(late) == {0, 250}
    assert 15 < late.count(250) < 50


def test_late_arrivals_are_no_faults_of_an_answer() -> None:
    book = FaultBook(7, ManualClock().monotonic)
    book.add(LateArrival(ms=5), Gateway())
    ask = PublicRequest(1, "ping", 0)
    assert [fault.kind for fault, _ in book.strike(ask)] == ["gateway"]
    assert book.hold_up(ask) == [5]
    assert [entry["struck"] for entry in book.listing()] == [1, 1]


async def test_a_request_counts_when_it_arrives(
    exchange: SimulatedExchange, http: aiohttp.ClientSession, clock: ManualClock
) -> None:
    first = await leaves(exchange, http)
    async with http.get(PING) as second:
        assert second.status == 200, "it overtook the first one, which does not count yet"
    clock.advance(10)
    async with http.get(PING) as third:
        assert third.status == 429
    assert await first == 429
    entries = exchange.journal.since()
    assert [entry.at_ms - entries[0].at_ms for entry in entries] == [0, 10_000, 10_000]
    assert [entry.faults for entry in entries] == [(), ("late_arrival",), ()]


async def test_a_request_that_was_given_up_arrives_all_the_same(
    exchange: SimulatedExchange, http: aiohttp.ClientSession, clock: ManualClock
) -> None:
    given_up = await leaves(exchange, http)
    given_up.cancel()
    clock.advance(10)
    async with http.get(PING) as answer:
        assert answer.status == 429
    assert [entry.status for entry in exchange.journal.since()] == [0, 429]


async def test_a_stall_of_the_exchange_is_not_taken_for_lateness(clock: ManualClock) -> None:
    road: Road[None] = Road(lambda: clock.monotonic() * 1000)
    began, arrivals = clock.monotonic() * 1000, list[float]()
    under_way = [asyncio.create_task(road.travel(ms, arrivals.append)) for ms in (40, 20)]
    await asyncio.sleep(0)
    clock.advance(5)
    await road.travel(0, arrivals.append)
    await asyncio.gather(*under_way)
    assert [at_ms - began for at_ms in arrivals] == [20, 40, 5000]


async def test_a_late_request_arrives_by_itself() -> None:
    async with (
        SimulatedExchange(faults=[LateArrival(ms=20, count=1)]) as exchange,
        aiohttp.ClientSession(exchange.url) as http,
    ):
        async with http.get(PING) as answer:
            assert answer.status == 200
        assert exchange.journal.since()[0].faults == ("late_arrival",)
