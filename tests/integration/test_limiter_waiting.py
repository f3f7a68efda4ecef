"""Who waits for a token, for how long, and who goes first."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.caller import Caller, on_behalf_of
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.token import Token
from collector.connectors.window import Window
from collector.errors import RateLimited
from collector.mongo.client import Database
from tests.support.aged_limiter import age_limiter
from tests.support.link_address import through
from tests.support.lossy_link import lossy_link

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.embedded import EmbeddedMongo

LONG = 3_600_000


@pytest.fixture
async def limiter(database: Database) -> AsyncIterator[Limiter]:
    async with Limiter(database) as limiter:
        yield limiter


@pytest.fixture
def registry(database: Database) -> ConnectorRegistry:
    return ConnectorRegistry(database)


class Commands:
    """Counts the commands on connectors, and holds one up when it is told to."""

    def __init__(self, database: Database) -> None:
        self.sent = 0
        self.held = asyncio.Event()
        self.go = asyncio.Event()
        self.go.set()
        self._ask = database.connectors.find_one_and_update
        database.connectors.find_one_and_update = self  # type: ignore[method-assign,assignment]

    async def __call__(self, *args: Any, **options: Any) -> Any:
        self.sent += 1
        self.held.set()
        await self.go.wait()
        return await self._ask(*args, **options)


@pytest.fixture
def commands(database: Database) -> Commands:
    return Commands(database)


async def test_who_comes_during_a_command_waits_no_longer_than_its_patience(
    registry: ConnectorRegistry, limiter: Limiter, commands: Commands
) -> None:
    await registry.ensure("x", Limits(1, 20_000))
    await limiter.acquire("x")
    commands.go.clear()
    commands.held.clear()
    patient = asyncio.create_task(limiter.acquire("x", patience=60.0))
    await commands.held.wait()
    hasty = asyncio.create_task(limiter.acquire("x", patience=0.2))
    await asyncio.sleep(0)
    commands.go.set()
    async with asyncio.timeout(120):
        with pytest.raises(RateLimited):
            await hasty
    assert not patient.done()
    patient.cancel()


async def test_everybody_waits_for_the_first_who_may_have_a_token(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    """A heavy request that needs minutes more must not keep the light ones waiting."""
    windows = (Window("weight", 10, 60_000),)
    await registry.ensure("x", Limits(2, 500, windows=windows))
    await limiter.acquire("x", weight=1)
    await limiter.acquire("x", weight=4)
    waiting = [
        asyncio.create_task(limiter.acquire("x", weight=weight, patience=90.0))
        for weight in (1, 9, 1)
    ]
    async with asyncio.timeout(120):
        await asyncio.gather(waiting[0], waiting[2])
    assert not waiting[1].done()
    waiting[1].cancel()


async def test_a_fixed_window_is_asked_again_when_it_has_ended_and_not_before(
    registry: ConnectorRegistry, limiter: Limiter, commands: Commands
) -> None:
    await registry.ensure("x", Limits(1, 400, algorithm="fixed_window"))
    for _ in range(5):
        await limiter.acquire("x", patience=60.0)
    # By the connector's count: a token does not outlive its window, and another one is bought.
    grants = (await registry.get("x")).document["granted_total"]
    assert commands.sent <= 2 * grants, "one that was denied, and one after the reset"


@pytest.mark.parametrize("weight", [20, 80])
async def test_a_heavy_request_that_was_denied_for_a_period_has_its_room_kept_free(
    database: Database, registry: ConnectorRegistry, limiter: Limiter, weight: int
) -> None:
    windows = (Window("weight", 100, LONG),)
    await registry.ensure("x", Limits(100_000, LONG, windows=windows))

    async def light(asking: Limiter, count: int) -> int:
        """How many of so many light requests get their token."""
        asked = (asking.acquire("x") for _ in range(count))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        return sum(isinstance(each, Token) for each in answers)

    async with Limiter(database) as twin:
        assert await light(twin, 200) == 100
        with pytest.raises(RateLimited):
            await limiter.acquire("x", weight=weight)
        starve(limiter, "x", weight, LONG)
        with pytest.raises(RateLimited):
            await limiter.acquire("x", weight=weight)
        await age_limiter(database, 2 * LONG)
        # All of the window is free, and the light ones come first, in every process.
        assert await light(twin, 200) + await light(limiter, 200) == 100 - weight
        await limiter.acquire("x", weight=weight)


async def test_room_that_was_saved_is_given_up_when_nobody_comes_for_it(
    database: Database, registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(1_000, 300, windows=(Window("weight", 10, 300),)))
    await limiter.acquire("x")

    async def save(for_ms: int) -> None:
        saved = {"weight": 10, "until": database.server_clock.now_ms() + for_ms}
        change = {"$set": {"limiter.saved": saved}}
        await database.connectors.update_one({"exchange_id": "x"}, change)

    await save(LONG)
    with pytest.raises(RateLimited):
        await limiter.acquire("x")
    await save(100)
    await limiter.acquire("x", patience=60.0)


async def test_others_may_have_what_priority_callers_have_had_of_the_reserve(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(10, LONG, priority_reserve=3))
    for _ in range(3):
        await limiter.acquire("x", priority=True)
    for _ in range(7):
        await limiter.acquire("x")
    with pytest.raises(RateLimited, match="hour_quota"):
        await limiter.acquire("x")


async def test_a_batch_does_not_cross_into_the_reserve(
    registry: ConnectorRegistry, limiter: Limiter
) -> None:
    await registry.ensure("x", Limits(10, LONG, priority_reserve=3, reserve_threshold=0.5))
    answers = await asyncio.gather(
        *(limiter.acquire("x") for _ in range(12)), return_exceptions=True
    )
    denied = [each for each in answers if isinstance(each, RateLimited)]
    assert len(answers) - len(denied) == 7
    assert {each.reason for each in denied} == {"priority_reserve"}
    for _ in range(3):
        await limiter.acquire("x", priority=True)


async def test_a_denial_of_the_exchange_burns_no_global_token(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(1, LONG))
    await registry.ensure("y", Limits(100, LONG))
    await registry.ensure_global(Limits(3, LONG))
    async with Limiter(database, use_global=True) as limiter:
        await limiter.acquire("x")
        for _ in range(20):
            with pytest.raises(RateLimited, match="x: no token"):
                await limiter.acquire("x")
        await limiter.acquire("y")
        await limiter.acquire("y")
        with pytest.raises(RateLimited, match="all exchanges"):
            await limiter.acquire("y")


async def test_a_grant_whose_answer_was_lost_is_repeated_by_the_driver_and_counted_once(
    mongo: EmbeddedMongo, database: Database, registry: ConnectorRegistry
) -> None:
    """The server repeats what it granted, without the time and what else it would work out."""
    await registry.ensure("x", Limits(3, LONG))
    name = database.raw.name
    async with (
        lossy_link(mongo.port) as link,
        Database(through(link.port, mongo.uri), name) as far,
    ):
        async with Limiter(far) as limiter:
            await limiter.acquire("x")
            link.lose_answer_to("findAndModify")
            answers = await asyncio.gather(
                *(limiter.acquire("x") for _ in range(3)), return_exceptions=True
            )
        assert link.lost == 1
    # Two were granted. Repeating took longer than a token lives, or it did not.
    assert {type(each) for each in answers} <= {Token, RateLimited}
    assert isinstance(answers[2], RateLimited)
    assert (await registry.get("x")).document["granted_total"] == 3


def starve(limiter: Limiter, exchange_id: str, weight: int, period_ms: int) -> None:
    """A request of this weight was denied so long ago."""
    starving = limiter._lane(exchange_id)._starving
    hunger = starving._weights[weight]
    starving._weights[weight] = replace(hunger, since=hunger.since - period_ms / 1000)


async def test_a_caller_spends_in_its_own_name(database: Database) -> None:
    caller = Caller("job", priority=True)
    with on_behalf_of(caller):
        seen = await asyncio.create_task(_who())
    assert seen is caller


async def _who() -> Caller:
    from collector.connectors.caller import current_caller

    return current_caller()
