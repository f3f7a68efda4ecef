"""A lake with trade history in it: whoever walks exchanges passes it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import NotStored
from collector.history.writer import HistoryWriter
from collector.market.series import Series
from collector.reader.trades import no_trades
from collector.store.refused_rows import Which, refused_rows
from collector.store.store import Store
from tests.support.bars import bars, span
from tests.support.history_trades import added, sale
from tests.support.local_api import serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    series = Series.of("simulated", "BTC/USDT", "1m")
    store.append_page(series, bars({0: 1.0, 1: 2.0}), span(0, 2), fence=1, known_at=1)
    writer = HistoryWriter(store.storage, "binance")
    writer.apply([(1, added("0x1", 0, sale(5)))])
    writer.save()
    return store


async def test_series_reports_and_lists_are_of_exchanges_alone(
    store: Store, database: Database, tmp_path: Path
) -> None:
    assert {each.exchange_id for each in store.series()} == {"simulated"}
    assert list(refused_rows(store.storage, Which())) == []
    assert isinstance(no_trades(store.storage, "binance", "BTC/USDT"), NotStored)
    async with serving(database, tmp_path) as client:
        covered = (await client.get("/api/v1/coverage")).body["items"]
    assert [each["exchange_id"] for each in covered] == ["simulated"]
