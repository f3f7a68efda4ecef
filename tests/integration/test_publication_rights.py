"""A Redis whose user may not publish: nothing is lost, and it is said what is missing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from collector.publication.gate import GateOffer, PublishDataGate
from collector.publication.message import Publication
from collector.publication.redis_link import refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.support.redis_server import RedisServer

CHANNEL = "fxcm:ohlcv"
PAGE = Path(__file__).parents[2] / "docs" / "publication.md"
KEY = "fxcm:published:ohlcv:XAU/USD:1m"
RIGHTS = ["reset", "on", ">secret", "+@all", "~*"]


@asynccontextmanager
async def gate_of(server: RedisServer, *rights: str) -> AsyncIterator[PublishDataGate]:
    async with server.client() as client:
        await client.execute_command("ACL", "SETUSER", "publisher", *RIGHTS, *rights)
    gate = PublishDataGate(url_of(server))
    try:
        yield gate
    finally:
        await gate.close()


def url_of(server: RedisServer) -> SecretStr:
    return SecretStr(server.url.replace("://", "://publisher:secret@"))


def message(start: int, *texts: bytes) -> Publication:
    times = tuple(range(start, start + len(texts)))
    offer = GateOffer(1, 0 if start < 10 else start, start, start + len(texts), times)
    return Publication(KEY, CHANNEL, offer, texts, (b"[", b"]"))


async def mark(server: RedisServer) -> Any:
    async with server.client() as client:
        return await client.hgetall(KEY)


@pytest.mark.parametrize("before", [False, True])
async def test_what_redis_refuses_to_publish_does_not_count_as_published(
    redis_server: RedisServer, before: bool
) -> None:
    async with gate_of(redis_server, "allchannels") as gate:
        if before:
            assert (await gate.admit(message(0, b"1"))).new == 1
        known = await mark(redis_server)
    async with gate_of(redis_server, "resetchannels") as gate:
        with pytest.raises(Exception, match=CHANNEL):
            await gate.admit(message(0, b"1", b"2", b"3"))
    assert await mark(redis_server) == known
    async with (
        gate_of(redis_server, "allchannels") as gate,
        redis_server.client() as client,
        client.pubsub() as pubsub,
    ):
        await pubsub.subscribe(CHANNEL)
        await pubsub.get_message(timeout=5)
        assert (await gate.admit(message(0, b"1", b"2", b"3"))).new == (2 if before else 3)
        heard = await pubsub.get_message(timeout=5)
        assert heard["data"] == (b"[2,3]" if before else b"[1,2,3]")


async def test_the_doctor_publishes_and_says_which_right_is_missing(
    redis_server: RedisServer,
) -> None:
    async with gate_of(redis_server, "resetchannels", "&fxcm:*"):
        why = await refusal(url_of(redis_server))
        assert why is not None
        assert "collector:doctor" in why
    async with gate_of(redis_server, "allchannels"):
        assert await refusal(url_of(redis_server)) is None
        assert await refusal(url_of(redis_server)) is None, "once more"


async def test_the_documented_rights_are_enough(redis_server: RedisServer) -> None:
    page = PAGE.read_text("utf-8")
    _, _, command = page.partition("ACL SETUSER collector on >PASSWORD ")
    rights = command.partition("```")[0].split()
    async with gate_of(redis_server, "reset", "on", ">secret", *rights) as gate:
        assert (await gate.admit(message(0, b"1"))).new == 1
        assert await refusal(url_of(redis_server)) is None
