"""Bars on their way from a worker to subscribers, over a real Redis-compatible server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from bson import ObjectId
from pydantic import SecretStr

from collector.backoff import Backoff
from collector.jobs.job import Cursor
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.published import PublishedTimes
from collector.jobs.queue import JobQueue
from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.operations.shown.status import shown_worker
from collector.operations.trouble_facts import troubles_now
from collector.publication.closed_bars import ClosedBars
from collector.publication.opening import publication
from collector.publication.supervisor import Capacities
from collector.store.store import Store
from tests.support.cuttable_link import CuttableLink, cuttable_link
from tests.support.local_collector import DAY, MINUTE, SYMBOL, Collecting, collecting, put
from tests.support.redis_server import RedisServer, Subscriber
from tests.support.until import until
from workers import maintenance

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from collector.publication.publisher import RedisPublisher

CHANNEL = "simulated:ohlcv"
SOON = Backoff(base_seconds=0.05, max_seconds=0.1)


def publishing(
    port: int, database: Database, root: Path, **options: Any
) -> AbstractAsyncContextManager[RedisPublisher]:
    url = SecretStr(f"redis://127.0.0.1:{port}/0")
    return publication(url, database, Store(root), **{"backoff": SOON, **options})


class Published(Collecting):
    """A collector that publishes, and what was received."""

    received: Subscriber
    publisher: RedisPublisher
    wire: CuttableLink
    """From the publisher to Redis. Redis stores no messages, so it is mended when the subscription
    stands again."""

    async def stream(self, since_ms: int) -> Job:
        """The incremental job of a series, some way behind."""
        return await self.job("ohlcv_incremental", cursor=Cursor(since_ms=since_ms))

    async def caught_up(self, job: Job) -> Job:
        """The job, when it has stored everything that has closed."""
        return await self.until(job, lambda job: job.document["stats"]["success"] >= 1)

    async def all_received(self, since_ms: int, until_ms: int) -> None:
        """Every bar, once, in order; a minute that ends meanwhile adds another."""
        wanted = [row[0] for row in self.truth(since_ms, until_ms)]
        await until(lambda: len(self.times()) >= len(wanted), "every bar was published")
        assert self.times()[: len(wanted)] == wanted

    def times(self) -> list[int]:
        return self.received.open_times(CHANNEL, SYMBOL)


@asynccontextmanager
async def stage(
    server: RedisServer, database: Database, root: Path, **options: Any
) -> AsyncIterator[Published]:
    async with (
        cuttable_link(server.port) as wire,
        Subscriber(server, [CHANNEL]) as received,
        publishing(wire.port, database, root, **options) as publisher,
        collecting(database, root, publisher=publisher) as c,
    ):
        stands = Published(**{name: getattr(c, name) for name in Collecting.__dataclass_fields__})
        stands.received, stands.publisher, stands.wire = received, publisher, wire
        yield stands


async def test_bars_that_closed_are_published_once_and_in_order(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    async with stage(redis_server, database, tmp_path) as c:
        job = await c.caught_up(await c.stream(c.first_ms))
        await c.all_received(c.first_ms, job.cursor.since_ms)
        [first, *_] = c.received.on(CHANNEL)
        assert list(first) == ["symbol", "tf", "bars", "fetched_at"]
        rows = [tuple(bar[name] for name in _FIELDS) for bar in first["bars"]]
        assert rows == c.truth(c.first_ms, rows[-1][0] + MINUTE)


_FIELDS = ("open_time", "open", "high", "low", "close", "volume")


async def test_the_job_remembers_up_to_where_its_series_was_published(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    async with stage(redis_server, database, tmp_path) as c:
        job = await c.caught_up(await c.stream(c.first_ms))
        end = job.cursor.since_ms
        await c.until(job, lambda job: job.document.get("published_ts", 0) >= end)


@pytest.mark.parametrize("capacity", [1, 2_000], ids=["no room in the queue", "room in the queue"])
async def test_an_outage_of_redis_delays_bars_and_loses_none(
    redis_server: RedisServer, database: Database, tmp_path: Path, capacity: int
) -> None:
    options = {"capacities": Capacities(ohlcv=capacity), "look_seconds": 0.05}
    async with stage(redis_server, database, tmp_path, **options) as c:
        await c.wire.cut()
        await redis_server.kill()
        await c.received.interrupted()
        job = await c.caught_up(await c.stream(c.first_ms))  # The collecting does not wait.
        assert c.stored(0, job.cursor.since_ms) == c.truth(c.first_ms, job.cursor.since_ms)
        diag = c.publisher.backoff_shown()["redis"]
        await until(lambda: c.publisher.backoff_shown()["redis"]["active"], "the pause is shown")
        assert set(diag) == {
            "active",
            "sleep_seconds",
            "last_error_type",
            "fail_count",
            "last_error_ts",
        }
        await redis_server.start()
        await c.received.listening()
        await c.wire.mend()
        shown = c.publisher.supervisor_shown() or {}
        assert (shown["backpressure_events"] > 0) == (capacity == 1)
        await c.all_received(c.first_ms, (await c.queue.get(job.id)).cursor.since_ms)
        await until(lambda: not c.publisher.backoff_shown()["redis"]["active"], "the pause is over")


async def test_a_redis_that_is_away_is_a_trouble_until_it_is_back(
    redis_server: RedisServer,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(maintenance, "EVERY_SECONDS", 0.1)

    async def kinds() -> set[str]:
        return {each.kind.value for each in await troubles_now(database)}

    async with stage(redis_server, database, tmp_path, look_seconds=0.05) as c:
        await c.wire.cut()
        await c.caught_up(await c.stream(c.first_ms))

        async def is_away() -> bool:
            return "redis" in await kinds()

        await until(is_away, "the trouble is shown")
        [worker] = await LiveWorkers(database).all()
        assert set(shown_worker(worker)["redis"]) == {"since", "error"}
        await c.wire.mend()

        async def is_back() -> bool:
            return "redis" not in await kinds()

        await until(is_back, "the trouble is over")


async def test_a_redis_that_lost_its_data_gets_nothing_twice(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    async with stage(redis_server, database, tmp_path) as c:
        job = await c.caught_up(await c.stream(c.first_ms))
        end = job.cursor.since_ms
        await c.until(job, lambda job: job.document.get("published_ts", 0) >= end)
    # A minute that ended meanwhile was published, too.
    job = await JobQueue(database).get(job.id)
    end = job.document["published_ts"]
    await redis_server.forget()
    series = Series.of("simulated", SYMBOL, "1m")
    async with (
        Subscriber(redis_server, [CHANNEL]) as received,
        publishing(redis_server.port, database, tmp_path) as publisher,
    ):
        rows = [
            (at, 1.0, 1.0, 1.0, 1.0, 1.0) for at in range(end - 3 * MINUTE, end + MINUTE, MINUTE)
        ]
        again = ClosedBars(
            series,
            job.id,
            job.fence,
            end - 3 * MINUTE,
            end + MINUTE,
            job.document["published_ts"],
            CandleBatch.of(rows),
            0.0,
        )
        await publisher.publish_closed(again)
        await until(lambda: received.open_times(CHANNEL, SYMBOL), "the new bar is published")
    assert received.open_times(CHANNEL, SYMBOL) == [end]


async def test_a_slow_twin_publishes_nothing_after_its_successor(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    series = Series.of("simulated", SYMBOL, "1m")

    def bar(minute: int, fence: int, published: int) -> ClosedBars:
        at = minute * MINUTE
        batch = CandleBatch.of([(at, 1.0, 2.0, 0.5, 1.5, float(fence))])
        return ClosedBars(
            series, ObjectId(), fence, at, at + MINUTE, published * MINUTE, batch, 0.0
        )

    async with (
        Subscriber(redis_server, [CHANNEL]) as received,
        publishing(redis_server.port, database, tmp_path) as slow,
        publishing(redis_server.port, database, tmp_path) as successor,
    ):
        await slow.publish_closed(bar(10, 1, 10))
        await until(lambda: len(received.messages) == 1, "the first bar is published")
        await successor.publish_closed(bar(11, 2, 10))
        await until(lambda: len(received.messages) == 2, "the successor has published")
        await slow.publish_closed(bar(11, 1, 10))
        await slow.publish_closed(bar(12, 1, 10))
        await successor.publish_closed(bar(12, 2, 11))
        await until(lambda: len(received.messages) == 3, "the successor goes on")
    bars = [bar for payload in received.on(CHANNEL) for bar in payload["bars"]]
    told = [(bar["open_time"] // MINUTE, bar["volume"]) for bar in bars]
    assert told == [(10, 1.0), (11, 2.0), (12, 2.0)]


async def test_bars_of_a_worker_that_died_are_published_by_another_one(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    """It had stored a day of bars and published half of it."""
    async with collecting(database, tmp_path) as c:
        put(c, c.first_ms, c.first_ms + DAY)
        job = await c.job(
            "ohlcv_incremental", cursor=Cursor(since_ms=c.first_ms + DAY), first_run_ms=2**50
        )
        middle = c.first_ms + DAY // 2
        await database.jobs.update_one({"_id": job.id}, {"$set": {"published_ts": middle}})
        async with (
            Subscriber(redis_server, [CHANNEL]) as received,
            publishing(redis_server.port, database, tmp_path, look_seconds=0.05),
        ):
            await until(
                lambda: len(received.open_times(CHANNEL, SYMBOL)) >= DAY // 2 // MINUTE,
                "every bar is published",
            )
        wanted = [row[0] for row in c.truth(middle, c.first_ms + DAY)]
        assert received.open_times(CHANNEL, SYMBOL) == wanted
        await c.until(job, lambda job: job.document["published_ts"] == c.first_ms + DAY)
        assert await PublishedTimes(database).owed() == []


async def test_without_a_supervisor_bars_are_published_from_the_producers_task(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    async with stage(redis_server, database, tmp_path, async_supervisor=False) as c:
        job = await c.caught_up(await c.stream(c.first_ms))
        await c.all_received(c.first_ms, job.cursor.since_ms)
        assert c.publisher.supervisor_shown() is None


async def test_a_price_stream_is_published_on_three_channels(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    names = [f"simulated:{name}" for name in ("price_tik", "heartbeat", "market_status")]
    async with (
        Subscriber(redis_server, names) as received,
        publishing(redis_server.port, database, tmp_path) as publisher,
        collecting(database, tmp_path, publisher=publisher) as c,
    ):
        params = {"symbols": [SYMBOL], "price_snap_interval_seconds": 0.2}
        await c.job("price_stream", symbol=None, timeframe=None, params=params)
        await until(lambda: len(received.on(names[0])) >= 3, "prices are published")
        await until(lambda: received.on(names[2]), "the market's status is published")
    prices = received.on(names[0])
    assert [list(each) for each in prices] == [list(_PRICE)] * len(prices)
    snapped = [each["snap_ts"] for each in prices]
    assert snapped == sorted(set(snapped)), "one record a symbol and snapshot, in order"
    [*_, beat] = received.on(names[1])
    assert beat["context"]["diag"]["backoff"]["redis"]["active"] is False
    shown = beat["context"]["supervisor"]
    assert shown["total_dropped"] == shown["backpressure_events"] == 0
    assert {each["state"] for each in shown["tasks"].values()} == {"running"}
    assert set(received.on(names[2])[0]) == {
        "state",
        "next_open_seconds",
        "ts",
        "price_snap_ts",
        "tick_silence_seconds",
    }


_PRICE = ("symbol", "bid", "ask", "mid", "tick_ts", "snap_ts")


async def test_a_series_whose_job_was_made_anew_is_published_on(
    redis_server: RedisServer, database: Database, tmp_path: Path
) -> None:
    """The mark in Redis has the fence of the job before, which ran fifty times."""

    def bar(minute: int, fence: int) -> ClosedBars:
        at = minute * MINUTE
        batch = CandleBatch.of([(at, 1.0, 2.0, 0.5, 1.5, 9.0)])
        return ClosedBars(c.series, ObjectId(), fence, at, at + MINUTE, at, batch, 0.0)

    async with stage(redis_server, database, tmp_path) as c:
        await c.publisher.publish_closed(bar(10, fence=50))
        new = await c.job("ohlcv_incremental", first_run_ms=2**50)
        await c.publisher.publish_closed(bar(11, fence=new.fence + 1))
        await until(lambda: c.times() == [10 * MINUTE, 11 * MINUTE], "the next bar is published")
