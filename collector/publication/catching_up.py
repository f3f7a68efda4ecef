"""Series whose bars are stored and not published, because their worker died or had no room."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector import logs
from collector.errors import DatabaseUnavailable
from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.publication.closed_bars import ClosedBars

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bson import ObjectId

    from collector.jobs.published import OwedBars, PublishedTimes
    from collector.publication.publisher import RedisPublisher
    from collector.publication.redis_link import RedisLink

LOOK_SECONDS = 15.0
WRITE_SECONDS = 1.0

_log = logs.get("collector.publication")


class CatchingUp:
    """Writes `published_ts` every second, and now and then looks for series that are behind.

    A series counts when it was at the same place in the look before: until then the worker that
    collected it is expected to publish it. Two workers that publish the same series at once do no
    harm, for the gate admits each bar once.
    """

    def __init__(
        self,
        published: PublishedTimes,
        publisher: RedisPublisher,
        link: RedisLink,
        now_seconds: Callable[[], float],
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._look_seconds = look_seconds
        self._published = published
        self._publisher = publisher
        self._link = link
        self._now_seconds = now_seconds
        self._before: dict[ObjectId, int] = {}

    async def keep_going(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._every(WRITE_SECONDS, self._published.flush))
            group.create_task(self._every(self._look_seconds, self.look))

    async def _every(self, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except DatabaseUnavailable:
                _log.debug("publication_waits_for_mongodb")
            await asyncio.sleep(seconds)

    async def look(self) -> None:
        """Hands over what has not moved since the look before."""
        if self._link.backoff.state.active:
            return
        owed = await self._published.owed()
        for each in owed:
            if self._before.get(each.job.id) == each.published_ms:
                await self._publisher.publish_closed(self._behind(each))
        self._before = {each.job.id: each.published_ms for each in owed}

    def _behind(self, owed: OwedBars) -> ClosedBars:
        """Up to the job's cursor, all of it from the lake."""
        job = owed.job
        return ClosedBars(
            Series.of(job.exchange_id, str(job.symbol), str(job.timeframe)),
            job.id,
            job.fence,
            job.cursor.since_ms,
            job.cursor.since_ms,
            owed.published_ms,
            CandleBatch.empty(),
            self._now_seconds(),
        )
