"""Damaged files of a network are set aside or removed, beside a worker that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.history.reader import HistoryReader
from collector.history.repair import LostEvents, damaged_files, lost_events, repair_network
from collector.history.uint256 import SCALE
from collector.history.writer import HistoryWriter, Overtaken
from tests.support.history_trades import GOLD, OIL, added, read, sale

if TYPE_CHECKING:
    from tests.support.lakes import Lake


def writer_of(lake: Lake, count: int) -> HistoryWriter:
    """One segment for each event, and all of them in saved buckets."""
    history_writer = HistoryWriter(lake.storage(), "n", fence=1)
    for n in range(1, count + 1):
        history_writer.apply([(n, added(str(n), n, sale(n)))])
    history_writer.save()
    return history_writer


def paths(lake: Lake, place: str) -> list[str]:
    return [path for path in sorted(lake.everything("_history")) if place in path]


def flip(lake: Lake, path: str) -> None:
    data = bytearray(lake.read(path))
    data[len(data) // 3] ^= 8
    lake.write(path, bytes(data))


def closes(history_writer: HistoryWriter) -> list[int]:
    return [each.close // SCALE for each in read(history_writer.history)]


@pytest.mark.parametrize("gone", [0, 1, 3], ids=["first", "middle", "last"])
@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_a_lost_segment_leaves_an_empty_one_and_buckets_without_its_trades(
    lake: Lake, gone: int, how: str
) -> None:
    history_writer = writer_of(lake, 4)
    lost = paths(lake, "/ledger/")[gone]
    if how == "missing":
        lake.delete(lost)
    else:
        flip(lake, lost)
    expected = [LostEvents("n", gone + 1, gone + 1)]
    told, events = repair_network(lake.storage(), "n", dry_run=True)
    assert ([each.path for each in told], events) == ([lost] * (how == "damaged"), expected)
    done, events = repair_network(lake.storage(), "n")
    assert events == expected
    assert [each.aside for each in done] == [f"{lost}.corrupt"] * (how == "damaged")

    left = [n for n in (1, 2, 3, 4) if n != gone + 1]
    reader = HistoryReader("n", GOLD, OIL, lake.storage())
    assert [int(each["close"]) // SCALE for each in reader.market_rate("ohlcv")["items"]] == left
    with pytest.raises(Overtaken):
        history_writer.apply([(5, added("5", 5, sale(5)))])
    history_writer.resume(1)
    history_writer.apply([(5, added("5", 5, sale(5)))])
    assert closes(history_writer) == [*left, 5]
    assert repair_network(lake.storage(), "n") == ([], [])


@pytest.mark.parametrize("how", ["damaged", "missing"])
@pytest.mark.parametrize("place", ["/buckets/60/", "/current.json"])
def test_damaged_buckets_are_discarded_and_nothing_is_lost(
    lake: Lake, place: str, how: str
) -> None:
    writer_of(lake, 3)
    [path] = paths(lake, place)
    if how == "missing":
        lake.delete(path)
    else:
        flip(lake, path)
    done, events = repair_network(lake.storage(), "n")
    silent = place == "/current.json" and how == "missing"
    assert ([each.path for each in done], events) == ([] if silent else [path], [])
    assert closes(HistoryWriter(lake.storage(), "n", fence=2)) == [1, 2, 3]
    assert all(each is None for each in damaged_files(lake.storage(), "n"))


def test_segments_that_a_merge_left_behind_are_not_missed(lake: Lake) -> None:
    writer_of(lake, 9)
    merged = max(paths(lake, "/ledger/"), key=len)
    assert lost_events(lake.storage(), "n") == []
    short = merged.replace("00000000008-", "00000000002-")
    lake.write(short, b"half a segment")
    told, events = repair_network(lake.storage(), "n")
    assert ([each.path for each in told], events) == ([short], [])
    assert closes(HistoryWriter(lake.storage(), "n", fence=2)) == list(range(1, 10))
