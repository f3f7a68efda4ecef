"""What producers see of the publication: nothing of it ever stops them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from bson import ObjectId

from collector.backoff import Backoff
from collector.backoff_controller import BackoffController
from collector.clock import ManualClock
from collector.errors import StoreError
from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.publication.channels import OHLCV
from collector.publication.closed_bars import ClosedBars
from collector.publication.publisher import MOST_BARS_IN_MEMORY, RedisPublisher
from collector.publication.redis_link import RedisLink
from collector.publication.supervisor import QUEUES, AsyncStreamSupervisor, Capacities
from collector.streams.publisher import PriceSnapshot

if TYPE_CHECKING:
    from collector.jobs.published import PublishedTimes
    from collector.publication.redis_link import Gate

MINUTE = 60_000
JOB = ObjectId()
SERIES = Series.of("simulated", "BTC/USDT", "1m")


class Noted:
    """Instead of MongoDB: what would be written."""

    def __init__(self) -> None:
        self.times: dict[ObjectId, list[int]] = {}

    def note(self, job_id: ObjectId, until_ms: int) -> None:
        self.times.setdefault(job_id, []).append(until_ms)


class Stage:
    """A publisher whose sinks keep what they get, or fail."""

    def __init__(self, *, queued: bool, failure: Exception | None = None) -> None:
        self.delivered: list[Any] = []
        self.noted = Noted()
        clock = ManualClock()
        backoff = BackoffController("redis", Backoff(), clock, lambda: 0.5)
        link = RedisLink(cast("Gate", None), backoff)

        async def sink(message: Any) -> bool:
            if failure is not None:
                raise failure
            self.delivered.append(message)
            return True

        sinks = dict.fromkeys(QUEUES, sink)
        supervisor = AsyncStreamSupervisor(sinks, link, clock, Capacities(ohlcv=1))
        published = cast("PublishedTimes", self.noted)
        self.publisher = RedisPublisher(sinks, link, published, supervisor if queued else None)


def closed(first: int, count: int, job_id: ObjectId = JOB) -> ClosedBars:
    rows = [(at * MINUTE, 1.0, 1.0, 1.0, 1.0, 1.0) for at in range(first, first + count)]
    until_ms = (first + count) * MINUTE
    batch = CandleBatch.of(rows)
    return ClosedBars(SERIES, job_id, 1, first * MINUTE, until_ms, None, batch, 0.0)


async def test_a_lake_that_cannot_be_read_does_not_stop_who_collects() -> None:
    stage = Stage(queued=False, failure=StoreError("the disk is gone"))
    await stage.publisher.publish_closed(closed(0, 1))


async def test_a_full_queue_does_not_stop_who_collects() -> None:
    stage = Stage(queued=True)
    for minute in range(5):
        await stage.publisher.publish_closed(closed(minute, 1))
    shown = stage.publisher.supervisor_shown() or {}
    assert shown["queues"][OHLCV]["backpressure_events"] == 4


async def test_many_bars_are_left_in_the_lake() -> None:
    stage, job_id = Stage(queued=False), ObjectId()
    await stage.publisher.publish_closed(closed(0, MOST_BARS_IN_MEMORY, job_id))
    await stage.publisher.publish_closed(closed(1_000, MOST_BARS_IN_MEMORY + 1, job_id))
    few, many = stage.delivered
    assert len(few.candles) == MOST_BARS_IN_MEMORY
    assert len(many.candles) == 0
    assert many.from_ms == many.until_ms == (1_000 + MOST_BARS_IN_MEMORY + 1) * MINUTE


async def test_a_series_begins_with_the_first_bars_whatever_becomes_of_them() -> None:
    stage, job_id = Stage(queued=False), ObjectId()
    for minute in (10, 11, 12):
        await stage.publisher.publish_closed(closed(minute, 1, job_id))
    assert [each.published_ms for each in stage.delivered] == [10 * MINUTE] * 3
    assert stage.noted.times == {job_id: [10 * MINUTE]}


async def test_an_empty_snapshot_is_no_message() -> None:
    stage = Stage(queued=False)
    await stage.publisher.publish_prices(PriceSnapshot("simulated", 1, 1.0, ()))
    assert stage.delivered == []
