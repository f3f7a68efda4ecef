"""How a market trades, as far as the lake knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class Trading:
    """Rows per covered slot, and where the bars begin and end."""

    rows_a_slot: float
    first_ms: int
    last_ms: int

    @classmethod
    def of(cls, store: Store, series: Series) -> Trading:
        ledger, span, cursor = store.coverage(series), store.span(series), store.cursor(series)
        slots = sum(series.timeframe.count(each.from_ms, each.to_ms) for each in ledger)
        bars = sum(each.bars for each in ledger)
        if span is None or cursor is None or cursor.last_ts is None:
            return cls(0.0, 0, 0)
        return cls(bars / max(1, slots), span.from_ms, cursor.last_ts)

    def goes_on_around(self, stretch: Interval) -> bool:
        return self.first_ms < stretch.from_ms and stretch.to_ms <= self.last_ms
