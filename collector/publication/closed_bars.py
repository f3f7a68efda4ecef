"""Bars that have closed and are in the lake: what the collecting hands to the publication."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.market.series import Series


@dataclass(frozen=True, slots=True, eq=False)
class ClosedBars:
    """All bars of `[from_ms, until_ms)` of one series, as job `job_id` stored them."""

    series: Series
    job_id: ObjectId
    fence: int
    from_ms: int
    until_ms: int
    published_ms: int | None
    """`published_ts` of the job: everything before it was published. None when nothing ever was."""
    candles: CandleBatch
    fetched_at: float

    def without_candles(self) -> ClosedBars:
        """The same end, with all of the bars before it to be read from the lake."""
        return replace(self, from_ms=self.until_ms, candles=CandleBatch.empty())

    def between(
        self, from_ms: int, until_ms: int, candles: CandleBatch, fetched_at: float
    ) -> ClosedBars:
        """Another stretch of the same series, for the same owner."""
        return replace(
            self, from_ms=from_ms, until_ms=until_ms, candles=candles, fetched_at=fetched_at
        )
