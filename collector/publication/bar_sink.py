"""Delivers the bars of a series from where its mark stands: from memory, else from the lake."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.market.candles import CandleBatch, bars_of
from collector.publication import payloads
from collector.publication.channels import series_mark_key
from collector.publication.gate import GateVerdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.jobs.published import PublishedTimes
    from collector.market.series import Series
    from collector.publication.closed_bars import ClosedBars
    from collector.publication.redis_link import RedisLink
    from collector.store.store import Store

BARS_AT_ONCE = 500
"""Of one message, when an outage is made good."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """`until_ms`: everything before it was published. None: Redis is away."""

    until_ms: int | None
    refused: bool = False
    """Another owner publishes this series now."""


class BarSink:
    """Bars that follow the mark are sent as they are. Before them, what the mark lacks is read."""

    def __init__(
        self,
        link: RedisLink,
        store: Store,
        published: PublishedTimes,
        now_seconds: Callable[[], float],
    ) -> None:
        self._link = link
        self._store = store
        self._published = published
        self._now_seconds = now_seconds
        self._reached: dict[str, int] = {}
        """What this process knows to be published, newer than what the jobs record."""

    async def deliver(self, closed: ClosedBars) -> bool:
        key = series_mark_key(closed.series)
        proven = self._proven(key, closed)
        at = proven if closed.from_ms > proven else closed.from_ms
        while at < closed.until_ms:
            sent = await self._step(closed, key, at)
            if sent.refused:
                return True
            if sent.until_ms is None:
                return False
            at = sent.until_ms
        return True

    async def _step(self, closed: ClosedBars, key: str, at: int) -> Delivered:
        """Publishes what begins at `at`: the message's own bars, or a piece of the lake."""
        part = closed if at >= closed.from_ms else await self._from_lake(closed, at)
        ruling = await self._link.publish(payloads.bars(part, self._proven(key, closed)))
        if ruling is None:
            return Delivered(None)
        if ruling.verdict is GateVerdict.STALE_FENCE:
            return Delivered(None, refused=True)
        self._note(key, closed, ruling.mark.until)
        return Delivered(ruling.mark.until)

    def _proven(self, key: str, closed: ClosedBars) -> int:
        """Without any knowledge the series begins with this message."""
        known = closed.from_ms if closed.published_ms is None else closed.published_ms
        return max(known, self._reached.get(key, known))

    def _note(self, key: str, closed: ClosedBars, until_ms: int) -> None:
        self._reached[key] = until_ms
        self._published.note(closed.job_id, until_ms)

    async def _from_lake(self, closed: ClosedBars, at: int) -> ClosedBars:
        frame = closed.series.timeframe
        until_ms = min(closed.from_ms, frame.shift(at, BARS_AT_ONCE))
        candles = await asyncio.to_thread(self._read, closed.series, at, until_ms)
        return closed.between(at, until_ms, candles, self._now_seconds())

    def _read(self, series: Series, from_ms: int, until_ms: int) -> CandleBatch:
        with self._store.reading(series) as reading:
            if not reading.is_stored:
                return CandleBatch.empty()
            tables = [bars_of(each) for each in reading.tables(from_ms, until_ms)]
        return CandleBatch.concat([CandleBatch.from_arrow(each) for each in tables])
