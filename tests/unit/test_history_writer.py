"""The writer of a network: what it accepts, what it rebuilds, and what it finds when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from collector.clock import ManualClock
from collector.history import segment_shelf, snapshot
from collector.history import writer as writing
from collector.history.bucket_files import CURRENT, NEXT, BucketFiles
from collector.history.layout import buckets_folder
from collector.history.ledger import Ledger
from collector.history.policy import CrossNet, Outcome
from collector.history.reader import HistoryReader
from collector.history.refusal import Refused
from collector.history.uint256 import LIMIT, SCALE
from collector.history.writer import HistoryWriter
from collector.store.port import Corrupt, StorageFault, Swapped
from tests.support.history_trades import (
    CROSS,
    GOLD,
    OIL,
    OTHER,
    PAIR,
    Numbering,
    added,
    at,
    deleted,
    read,
    recomputed,
    sale,
    trade,
)

if TYPE_CHECKING:
    from collector.history.event import Event
    from collector.history.pair import Pair
    from tests.support.lakes import Lake


def numbered(*events: Event, first: int = 1) -> list[tuple[int, Event]]:
    return list(enumerate(events, start=first))


def closes(history_writer: HistoryWriter, pair: Pair = PAIR) -> list[int]:
    return [each.close // SCALE for each in read(history_writer.history, pair)]


def test_events_become_buckets_and_are_there_after_a_restart(lake: Lake) -> None:
    one = HistoryWriter(lake.storage(), "riemann")
    one.apply(numbered(added("a", 0, sale(5)), added("b", 0.5, sale(7)), added("c", 1, sale(6))))
    again = HistoryWriter(lake.storage(), "riemann")
    for each in (one, again):
        assert each.applied_through == 3
        assert closes(each) == [7, 6]
        assert each.history.last_price(PAIR) == 6 * SCALE
    again.save()
    assert closes(HistoryWriter(lake.storage(), "riemann")) == [7, 6]
    assert all(path.startswith("_history/riemann/") for path in lake.everything())


def test_what_was_applied_is_not_applied_again(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    events = numbered(added("a", 0, sale(5)), added("b", 0, sale(6)))
    assert history_writer.apply(events) == {Outcome.ADDED: 2}
    assert not history_writer.apply(events)
    assert [each.trades for each in read(history_writer.history)] == [2]


def test_an_addition_counts_again_after_a_deletion_whatever_its_time(lake: Lake) -> None:
    history_writer, number = HistoryWriter(lake.storage(), "n"), Numbering()
    event, later = added("a", 0, sale(5)), added("a", 3, sale(8))
    outcomes = [
        [list(history_writer.apply(number(each))) for each in events]
        for events in [(event, event, later), (deleted(later), deleted(event)), (later, event)]
    ]
    assert outcomes == [[[Outcome.ADDED], [], []], [[Outcome.DELETED], []], [[Outcome.ADDED], []]]
    assert [(each.ts, each.trades) for each in read(history_writer.history)] == [(at(3), 1)]


def test_of_an_event_that_repeats_some_inputs_the_others_count(lake: Lake) -> None:
    history_writer, number = HistoryWriter(lake.storage(), "n"), Numbering()
    short, long = added("a", 0, sale(5)), added("a", 3, sale(5), sale(6))
    history_writer.apply(number(short))
    assert history_writer.apply(number(long)) == {Outcome.DUPLICATE: 1, Outcome.ADDED: 1}
    assert history_writer.apply(number(deleted(short))) == {Outcome.DELETED: 1}
    assert history_writer.apply(number(deleted(long))) == {
        Outcome.DUPLICATE: 1,
        Outcome.DELETED: 1,
    }
    assert read(history_writer.history) == []


def test_a_deletion_of_something_never_added_changes_nothing(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    outcome = history_writer.apply(numbered(deleted(added("a", 0, sale(5)))))
    assert outcome == {Outcome.UNMATCHED: 1}
    assert history_writer.applied_through == 1
    assert HistoryWriter(lake.storage(), "n").applied_through == 1


def test_several_inputs_of_one_bucket_are_rebuilt_exactly_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    doomed = added("x", 0.5, sale(9), sale(1), sale(4))
    history_writer.apply(numbered(added("a", 0, sale(5)), doomed, added("b", 1, sale(6))))
    windows: list[tuple[int, int]] = []
    monkeypatch.setattr(Ledger, "trades", _watched(Ledger.trades, windows))
    history_writer.apply(numbered(deleted(doomed), first=4))
    assert history_writer.counters.rebuilds == 1
    assert windows == [(at(0), at(1))]
    assert [(each.high, each.low, each.trades) for each in read(history_writer.history)] == [
        (5 * SCALE, 5 * SCALE, 1),
        (6 * SCALE, 5 * SCALE, 1),
    ]


def _watched(original: object, windows: list[tuple[int, int]]) -> object:
    def trades(self: Ledger, from_ms: int, to_ms: int) -> object:
        windows.append((from_ms, to_ms))
        return original(self, from_ms, to_ms)  # type: ignore[operator]

    return trades


def test_a_reorg_over_pairs_and_buckets_rebuilds_each_of_them_once(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n", clock=ManualClock())
    first = added("x", 0, sale(9), sale(3, pair=OTHER))
    second = added("y", 0.5, sale(8), sale(2, pair=OTHER))
    third = added("z", 1, sale(7))
    history_writer.apply(numbered(first, second, third, added("k", 0.7, sale(5))))
    history_writer.apply(
        numbered(deleted(third), deleted(second), deleted(first), added("w", 0.2, sale(4)), first=5)
    )
    assert history_writer.counters.rebuilds == 3
    assert closes(history_writer) == [5]
    assert closes(history_writer, OTHER) == []
    assert history_writer.history.last_price(OTHER) == 3 * SCALE


@pytest.mark.parametrize("gone", range(4), ids=["open", "high", "low", "close"])
def test_the_trade_that_made_a_price_can_be_deleted(lake: Lake, gone: int) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    events = [added(str(n), n / 10, sale(price)) for n, price in enumerate([5, 9, 3, 6])]
    history_writer.apply(numbered(*events, added("next", 1, sale(4))))
    history_writer.apply([(6, deleted(events[gone]))])
    left = [trade(n / 10, price) for n, price in enumerate([5, 9, 3, 6]) if n != gone]
    assert read(history_writer.history) == recomputed([*left, trade(1, 4)])[PAIR]


def test_cross_net_trades_are_ignored_under_reject(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    with capture_logs() as lines:
        outcome = history_writer.apply(numbered(added("a", 0, sale(5, pair=CROSS), sale(6))))
    assert outcome == {Outcome.CROSS_NET: 1, Outcome.ADDED: 1}
    assert (closes(history_writer, CROSS), closes(history_writer), lines) == ([], [6], [])


def test_cross_net_trades_count_under_warn_and_are_logged(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n", cross_net=CrossNet.WARN)
    with capture_logs() as lines:
        outcome = history_writer.apply(numbered(added("a", 0, sale(5, pair=CROSS))))
    assert outcome == {Outcome.ADDED_CROSS_NET: 1}
    assert closes(history_writer, CROSS) == [5]
    assert [(line["event"], line["pair"]) for line in lines] == [
        ("history_cross_net_trade", str(CROSS))
    ]
    strict = HistoryWriter(lake.storage(), "n")
    strict.apply([(2, deleted(added("a", 0, sale(5, pair=CROSS))))])
    assert closes(strict, CROSS) == [], "a policy never keeps a deletion out"


def test_what_was_not_paid_is_no_trade(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    outcome = history_writer.apply(
        numbered(added("a", 0, sale(5, payout=0)), added("b", 0, sale(6, residual=10)))
    )
    assert outcome == {Outcome.NO_PAYOUT: 1, Outcome.NOT_EXECUTED: 1}
    assert closes(history_writer) == []


def test_an_event_whose_sum_overflows_is_refused_as_a_whole(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    huge = sale(1, value=LIMIT - 20)
    outcome = history_writer.apply(
        numbered(
            added("a", 0, huge), added("b", 0.5, sale(2, 5), sale(1, 30)), added("c", 0.6, sale(1))
        )
    )
    assert outcome == {Outcome.ADDED: 2, Outcome.REFUSED: 2}
    (candle,) = read(history_writer.history)
    assert (candle.sum_base, candle.trades) == (LIMIT - 10, 2)
    history_writer.apply([(4, deleted(added("a", 0, huge))), (5, added("d", 0.7, sale(1, 30)))])
    assert [each.sum_base for each in read(history_writer.history)] == [40]


def test_sequences_that_go_back_are_refused(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    event = added("a", 0, sale(5))
    for wrong in ([(2, event), (1, event)], [(1, event), (1, event)], [(0, event)]):
        with pytest.raises(Refused):
            history_writer.apply(wrong)
    assert history_writer.applied_through == 0


class Killed(BaseException):
    pass


def test_a_death_at_any_moment_leaves_a_batch_applied_or_not_and_a_restart_goes_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "LONGEST_TAIL", 2)
    first = added("a", 0, sale(5))
    before = numbered(first, added("b", 1, sale(6)))
    batch = numbered(deleted(first), added("c", 0.5, sale(4)), added("d", 2, sale(8)), first=3)
    heads = set()
    for moment in range(60):
        here, left = lake.beside(str(moment)), [moment]
        HistoryWriter(here.storage(), "n").apply(before)

        def die(point: StorageFault, path: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        try:
            HistoryWriter(here.storage(die), "n").apply(batch)
            ended = True
        except Killed:
            ended = False
        again = HistoryWriter(here.storage(), "n")
        heads.add(again.applied_through)
        assert closes(again) == ([4, 6, 8] if again.applied_through == 5 else [5, 6])
        reader = HistoryReader("n", GOLD, OIL, here.storage())
        assert len(reader.market_rate("ohlcv")["items"]) == len(closes(again))
        again.apply(batch)
        assert closes(again) == [4, 6, 8]
        if ended:
            break
    assert heads == {2, 5}
    assert moment > 10


def test_a_restart_counts_trades_that_came_after_a_deletion_once(lake: Lake) -> None:
    """Catching up goes segment by segment: a bucket rebuilt on the way is one of that moment."""
    history_writer = HistoryWriter(lake.storage(), "n")
    first = added("a", 0, sale(5))
    for number, event in numbered(first, added("b", 0, sale(6)), deleted(first)):
        history_writer.apply([(number, event)])
    history_writer.apply([(4, added("c", 0.5, sale(7)))])
    again = HistoryWriter(lake.storage(), "n")
    assert [(each.trades, each.sum_base) for each in read(again.history)] == [(2, 20)]


def test_a_writer_that_was_overtaken_cannot_put_its_old_buckets_in_place(lake: Lake) -> None:
    old, new = (HistoryWriter(lake.storage(), "n") for _ in range(2))
    old.apply(numbered(added("a", 0, sale(5))))
    new.apply(numbered(added("b", 1, sale(6)), first=2))
    new.save()
    with pytest.raises(Swapped):
        old.save()
    assert closes(old) == [5, 6], "it looks again"


def test_a_failed_write_leaves_memory_as_the_files_are(lake: Lake) -> None:
    fails = [False]

    def full(point: StorageFault, path: str) -> None:
        if fails[0] and point is StorageFault.AFTER_RENAME and "ledger" in path:
            raise OSError(28, "No space left on device")

    history_writer = HistoryWriter(lake.storage(full), "n")
    history_writer.apply(numbered(added("a", 0, sale(5))))
    fails[0] = True
    with pytest.raises(Exception, match="No space left"):
        history_writer.apply([(2, added("b", 0, sale(6)))])
    fails[0] = False
    history_writer.apply([(2, added("b", 0, sale(6)))])
    assert [each.trades for each in read(history_writer.history)] == [2]


def test_a_damaged_segment_is_noticed(lake: Lake) -> None:
    HistoryWriter(lake.storage(), "n").apply(numbered(added("a", 0, sale(5))))
    (path,) = [path for path in lake.everything() if "/ledger/" in path]
    data = lake.read(path)
    lake.write(path, data[:100] + bytes([data[100] ^ 1]) + data[101:])
    with pytest.raises(Corrupt):
        _ = HistoryWriter(lake.storage(), "n").history


def flip(lake: Lake, place: str) -> str:
    """One bit of the only file there."""
    (path,) = [path for path in lake.everything() if f"/{place}" in path]
    data = bytearray(lake.read(path))
    data[len(data) // 4] ^= 1
    lake.write(path, bytes(data))
    return path


def of_many_trades(lake: Lake) -> HistoryWriter:
    history_writer = HistoryWriter(lake.storage(), "n", fence=1)
    history_writer.apply(numbered(*(added(str(n), n, sale(5 + n)) for n in range(20))))
    history_writer.save()
    return history_writer


def test_a_flipped_bit_in_a_large_segment_is_noticed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_shelf, "SMALL", 0)
    of_many_trades(lake)
    flip(lake, "ledger")
    with pytest.raises(Corrupt, match="its digest is another"):
        HistoryReader("n", GOLD, OIL, lake.storage(), cache=False).market_rate("ohlcv")


@pytest.mark.parametrize("damage", ["flipped", "missing"])
@pytest.mark.parametrize("place", ["buckets/60", f"buckets/{CURRENT}"])
def test_saved_buckets_that_are_damaged_are_made_again_from_the_ledger(
    lake: Lake, place: str, damage: str
) -> None:
    history_writer = of_many_trades(lake)
    expected = closes(history_writer)
    path = flip(lake, place)
    if damage == "missing":
        lake.delete(path)
    reader = HistoryReader("n", GOLD, OIL, lake.storage())
    with capture_logs() as lines:
        for _ in range(3):
            items = reader.market_rate("ohlcv")["items"]
            assert [int(each["close"]) // SCALE for each in items] == expected
    silent = place == f"buckets/{CURRENT}" and damage == "missing"
    assert [(line["event"], line["path"]) for line in lines] == (
        [] if silent else [("history_buckets_made_again", path)]
    )
    again = HistoryWriter(lake.storage(), "n", fence=2)
    assert closes(again) == expected
    again.save()
    with capture_logs() as lines:
        assert closes(HistoryWriter(lake.storage(), "n", fence=3)) == expected
    assert lines == []


def test_buckets_are_saved_by_the_first_who_has_caught_up_and_seldom_after_that(
    lake: Lake,
) -> None:
    clock = ManualClock()
    history_writer = HistoryWriter(lake.storage(), "n", clock=clock)
    saved = BucketFiles(lake.storage(), buckets_folder("n"))
    through = []
    for n, seconds in ((1, 0), (2, 60), (3, 3_600), (4, 3_599), (5, 1)):
        clock.advance(seconds)
        history_writer.apply([(n, added(str(n), n, sale(5)))])
        history_writer.save_seldom()
        through.append(saved.manifest().applied_through)
    assert through == [1, 1, 3, 3, 5]
    stamp = saved.stamp()
    clock.advance(7_200)
    history_writer.save_seldom()
    assert saved.stamp() == stamp, "nothing came since"


def test_buckets_of_a_long_history_are_made_again_within_bounded_memory(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_many_trades(lake).apply([(21, added("later", 60_000, sale(3)))])
    flip(lake, f"buckets/{CURRENT}")
    monkeypatch.setattr(writing, "LONGEST_TAIL", 10)
    monkeypatch.setattr(snapshot, "LONGEST_CATCH_UP", 10)
    reader = HistoryReader("n", GOLD, OIL, lake.storage())
    answer = reader.market_rate("ohlcv")
    assert (answer["source"], len(answer["items"])) == ("ledger", 21)
    again = HistoryWriter(lake.storage(), "n", fence=2)
    assert len(read(again.history)) == 21
    assert again.buckets.manifest().applied_through == 20
    assert reader.market_rate("ohlcv") == {**answer, "source": "buckets"}


def test_a_length_that_is_being_built_is_begun_again_when_its_document_is_damaged(
    lake: Lake,
) -> None:
    of_many_trades(lake)
    longer = HistoryWriter(lake.storage(), "n", bucket_sec=300, fence=2)
    assert longer.rebucket()
    flip(lake, f"buckets/{NEXT}")
    again = HistoryWriter(lake.storage(), "n", bucket_sec=300, fence=3)
    assert len(read(again.history)) == 20
    assert again.rebucket()
    assert not again.rebucket()
    assert len(read(again.history)) == 4


def test_files_that_a_death_left_behind_are_removed(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    history_writer.apply(numbered(added("a", 0, sale(5))))
    history_writer.save()
    lost = f"_history/n/buckets/60/{PAIR.folder}/2024-01-9.parquet"
    lake.write(lost, b"half a save")
    assert closes(HistoryWriter(lake.storage(), "n")) == [5]
    assert lost not in lake.everything()
    assert f"_history/n/buckets/{CURRENT}" in lake.everything()
