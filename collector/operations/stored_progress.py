"""How far the files of a lake have come, series by series. Waits for the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.store.port import Corrupt
from collector.store.trades import trade_batches, trade_days

if TYPE_CHECKING:
    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """What answers cover, and the newest bar; `is_damaged` when the files cannot say."""

    covered: tuple[Interval, ...] = ()
    last_ts: int = 0
    is_damaged: bool = False


def collected_series(store: Store) -> tuple[Series, ...]:
    """Every series that came from an exchange; bars made of minutes are made again from those."""
    return tuple(series for series in store.series() if _holds(store, series))


def stored_series(store: Store, series: Series) -> StoredSeries:
    try:
        cursor = store.cursor(series)
        last_ts = (cursor.last_ts if cursor else None) or 0
        return StoredSeries(store.covered(series), last_ts)
    except Corrupt:
        return StoredSeries(is_damaged=True)


def newest_trade_ms(store: Store, exchange_id: str, symbol: str) -> int | None:
    """When the newest stored trade of a market was made; None when there is none."""
    days = trade_days(store.storage, exchange_id, symbol)
    newest = None
    for batch in trade_batches(
        store.storage, exchange_id, symbol, days[-1].from_ms if days else 0, damaged="skip"
    ):
        if batch.num_rows:
            newest = int(batch["ts"][-1].as_py())
    return newest


def _holds(store: Store, series: Series) -> bool:
    try:
        return store.holds(series)
    except Corrupt:
        return True
