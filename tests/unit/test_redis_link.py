"""The link to Redis: failures become a pause that nobody waits out inside a call."""

from __future__ import annotations

import asyncio

from collector.backoff import Backoff
from collector.backoff_controller import BackoffController
from collector.clock import ManualClock
from collector.publication.gate import GateOffer, GateVerdict, Mark, Ruling
from collector.publication.message import Publication
from collector.publication.redis_link import RedisLink

MESSAGE = Publication("key", "fxcm:heartbeat", GateOffer(1, 0, 0, 2, (1,)), (b"{}",))


class Redis:
    """Fails as often as it is told to."""

    def __init__(self, failures: int) -> None:
        self.calls = 0
        self._failures = failures

    async def admit(self, publication: Publication) -> Ruling:
        self.calls += 1
        await asyncio.sleep(0)
        if self.calls <= self._failures:
            raise ConnectionError("refused")
        return Ruling(GateVerdict.ADMITTED, 1, Mark(1, 2))

    async def close(self) -> None:
        return


def linked(failures: int) -> tuple[RedisLink, Redis, ManualClock]:
    clock, redis = ManualClock(), Redis(failures)
    policy = Backoff(base_seconds=5, max_seconds=60, jitter=0)
    return (
        RedisLink(redis, BackoffController("redis", policy, clock, lambda: 0.5)),
        redis,
        clock,
    )


async def test_while_it_is_paused_redis_is_not_asked() -> None:
    link, redis, clock = linked(1)
    assert await link.publish(MESSAGE) is None
    assert await link.publish(MESSAGE) is None
    assert redis.calls == 1
    clock.advance(5)
    assert await link.publish(MESSAGE) is not None
    assert not link.backoff.state.active


async def test_one_outage_is_one_failure_however_many_messages_meet_it() -> None:
    link, redis, _ = linked(100)
    answers = await asyncio.gather(*(link.publish(MESSAGE) for _ in range(10)))
    assert answers == [None] * 10
    assert (redis.calls, link.backoff.state.fail_count) == (1, 1)


async def test_the_pause_grows_to_its_ceiling_and_names_the_error() -> None:
    link, _, clock = linked(100)
    for _ in range(8):
        await link.publish(MESSAGE)
        clock.advance(link.backoff.remaining_seconds)
    shown = link.backoff.state.shown()
    assert (shown["sleep_seconds"], shown["last_error_type"]) == (60.0, "ConnectionError")


class Swallowing:
    """A client that takes a cancellation for a broken connection, as drivers do."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def admit(self, publication: Publication) -> Ruling:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None
        raise AssertionError("unreachable")

    async def close(self) -> None:
        return


async def test_a_task_that_is_cancelled_while_it_publishes_ends() -> None:
    redis = Swallowing()
    backoff = BackoffController("redis", Backoff(), ManualClock(), lambda: 0.5)
    link = RedisLink(redis, backoff)

    async def publish_on() -> None:
        while await link.publish(MESSAGE) is None:
            await asyncio.Event().wait()

    task = asyncio.create_task(publish_on())
    await redis.asked.wait()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=120)
    assert task in done, "it goes on as if nothing had happened"
    assert task.cancelled()
