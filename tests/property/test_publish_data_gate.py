"""The gate on Redis against a plain model: any sequence of offers gets the same answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from collector.publication.gate import GateOffer, GateVerdict, PublishDataGate
from collector.publication.message import Publication
from tests.support.gate_model import GateModel
from tests.support.redis_server import RedisServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redis.asyncio import Redis

SERIES = ("a", "b")
MINUTE = 60_000
FIRST = 1_765_557_600_000


@st.composite
def offers(draw: st.DrawFn) -> tuple[str, GateOffer]:
    """Bars of some minutes, of one of two series, by owners with different fences."""
    start = draw(st.integers(0, 12))
    until = start + draw(st.integers(0, 5))
    minutes = draw(st.lists(st.integers(start, max(start, until - 1)), unique=True, max_size=5))
    times = [FIRST + each * MINUTE for each in sorted(minutes) if each < until]
    return draw(st.sampled_from(SERIES)), GateOffer(
        draw(st.integers(1, 4)),
        FIRST + draw(st.integers(0, 12)) * MINUTE,
        FIRST + start * MINUTE,
        FIRST + until * MINUTE,
        tuple(times),
    )


STEPS = st.lists(st.one_of(offers(), st.sampled_from(SERIES)), max_size=12)
"""Offers, and names of series whose mark is lost."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("valkey"), durable=False)
    await server.start()
    yield server
    await server.kill()


@pytest.fixture(scope="module")
async def client(server: RedisServer) -> AsyncIterator[Redis]:
    async with server.client() as client:
        yield client


@pytest.fixture(scope="module")
async def gate(server: RedisServer) -> AsyncIterator[PublishDataGate]:
    gate = PublishDataGate(SecretStr(server.url))
    yield gate
    await gate.close()


def texts(offer: GateOffer) -> tuple[bytes, ...]:
    return tuple(str(each).encode() for each in offer.times)


@pytest.mark.parametrize("joined", [True, False])
async def test_gate_and_model_are_equal(client: Redis, gate: PublishDataGate, joined: bool) -> None:
    loop = asyncio.get_running_loop()

    async def compare(steps: list[tuple[str, GateOffer] | str]) -> None:
        await client.flushall()
        model = GateModel()
        expected: list[bytes] = []
        async with client.pubsub() as pubsub:
            await pubsub.subscribe("channel")
            await pubsub.get_message(timeout=5)
            for step in steps:
                if isinstance(step, str):
                    model.forget(step)
                    await client.delete(step)
                    continue
                key, offer = step
                envelope = (b"[", b"]") if joined else None
                asked = Publication(key, "channel", offer, texts(offer), envelope)
                mine = model.admit(key, offer)
                assert await gate.admit(asked) == mine
                if mine.verdict is GateVerdict.ADMITTED and mine.new:
                    new = texts(offer)[-mine.new :]
                    expected += [b"[" + b",".join(new) + b"]"] if joined else new
            heard = [(await pubsub.get_message(timeout=5))["data"] for _ in expected]
            assert heard == expected
            await client.publish("channel", "end")
            assert (await pubsub.get_message(timeout=5))["data"] == b"end"

    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(STEPS)
    def run(steps: list[tuple[str, GateOffer] | str]) -> None:
        asyncio.run_coroutine_threadsafe(compare(steps), loop).result(60)

    await asyncio.to_thread(run)
