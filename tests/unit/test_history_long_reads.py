"""What reading costs in a history of years: the months that are asked for, and few in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.history import reader as reading
from collector.history.bucket_files import SavedBuckets
from collector.history.pair_buckets import KEPT
from collector.history.reader import HistoryReader
from collector.history.snapshot import Cached
from collector.history.writer import HistoryWriter
from collector.store.disk import LocalDisk
from tests.support.history_trades import GOLD, OIL, PAIR, added, at, sale

if TYPE_CHECKING:
    from pathlib import Path

    from collector.history.bucket_columns import BucketColumns
    from collector.history.pair import Pair

MONTHS = 24
DAY = 1_440


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two trades a month for two years, saved; and every month that is loaded after that."""
    writer = HistoryWriter(LocalDisk(tmp_path), "net")
    minutes = [each * 15.2 * DAY for each in range(2 * MONTHS)]
    events = [added(f"0x{number}", minute, sale(5)) for number, minute in enumerate(minutes)]
    writer.apply(list(enumerate(events, start=1)))
    writer.save()
    found: list[int] = []
    plain = SavedBuckets.load

    def counted(self: SavedBuckets, pair: Pair, month: int) -> BucketColumns:
        found.append(month)
        return plain(self, pair, month)

    monkeypatch.setattr(SavedBuckets, "load", counted)
    return found


def test_the_last_price_takes_one_month(loads: list[int], tmp_path: Path) -> None:
    reader = HistoryReader("net", GOLD, OIL, tmp_path)
    assert reader.market_rate("spot")["ts"] == at((2 * MONTHS - 1) * 15.2 * DAY)
    assert len(loads) == 1


def test_a_page_takes_the_months_that_are_on_it(
    loads: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CHUNK", 31 * DAY)
    reader = HistoryReader("net", GOLD, OIL, tmp_path)
    assert len(reader.market_rate("ohlcv", limit=2)["items"]) == 2
    assert len(set(loads)) <= 5


def test_a_walk_through_all_of_it_leaves_few_months_in_memory(
    loads: list[int], tmp_path: Path
) -> None:
    reader = HistoryReader("net", GOLD, OIL, tmp_path)
    assert reader.volume()["trades"] == 2 * MONTHS
    assert len(reader.market_rate("ohlcv")["items"]) == 2 * MONTHS
    assert len(set(loads)) == MONTHS
    source = reader._snapshots.take().source
    assert isinstance(source, Cached)
    months = source.history._pairs[PAIR].months
    assert len(months) == MONTHS
    assert sum(each is not None for each in months.values()) <= KEPT


def test_an_answer_after_a_write_reads_what_was_written(loads: list[int], tmp_path: Path) -> None:
    reader = HistoryReader("net", GOLD, OIL, tmp_path)
    reader.market_rate("spot")
    writer = HistoryWriter(LocalDisk(tmp_path), "net")
    last = 2 * MONTHS * 15.2 * DAY
    writer.apply([(2 * MONTHS + 1, added("0xnew", last, sale(9)))])
    loads.clear()
    answer = reader.market_rate("spot")
    assert (answer["ts"], answer["applied_through"]) == (at(last), 2 * MONTHS + 1)
    assert len(loads) <= 1
