"""`repair` on files alone: what is damaged is found, set aside and rebuilt as far as can be."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from collector.clock import ManualClock
from collector.market.answer import Rejected
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.market.trade import Trade
from collector.store import compaction as compactions
from collector.store import derived, part, segment, snapshot, trade_day
from collector.store.copies import DEFAULT_TIMEFRAMES, Copies
from collector.store.page import Page
from collector.store.repair import repair, repair_groups
from collector.store.store import Store
from collector.store.trades import append_trades, read_trades
from tests.support.bars import BTC, ETH, at, bars, span
from tests.support.file_damage import flip, footer_span, page_place

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "binance/BTC-USDT"
SEALED = f"{FOLDER}/1m.parquet"
GROUP = 60
"""Rows of a row group here."""
SLOTS = 4 * GROUP


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segment, part, snapshot, compactions, derived):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", GROUP)
    monkeypatch.setattr(trade_day, "ROWS_PER_BATCH", 10)


def opened(tmp_path: Path, tail_days: int = 0) -> Store:
    copies = Copies(DEFAULT_TIMEFRAMES, tail_days=tail_days)
    return Store(tmp_path, clock=ManualClock(1_700_000_000_000), copies=copies)


def filled(tmp_path: Path, tail_days: int = 0) -> Store:
    """Four row groups of minutes; every tenth slot was quiet, and slot 5 was revised."""
    store = opened(tmp_path, tail_days)
    prices = {slot: 100.0 + slot for slot in range(SLOTS) if slot % 10}
    store.append_page(BTC, bars(prices), span(0, SLOTS), fence=1, known_at=1)
    store.append_page(BTC, bars({5: 7.0}), span(5, 6), fence=1, known_at=2)
    store.compact(BTC)
    return store


def damage(tmp_path: Path, path: str, place: int | None = None) -> None:
    data = (tmp_path / path).read_bytes()
    (tmp_path / path).write_bytes(flip(data, page_place(data) if place is None else place))


def bar_of(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, **dict.fromkeys("ohlc")} if row["is_gap"] else row


def asides(tmp_path: Path) -> list[str]:
    return sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.corrupt*"))


def test_one_bad_page_costs_its_row_group_and_nothing_else(tmp_path: Path) -> None:
    before = filled(tmp_path).rows(BTC, at(0), at(SLOTS)).to_pylist()
    data = (tmp_path / SEALED).read_bytes()
    damage(tmp_path, SEALED, page_place(data, group=1))
    store = opened(tmp_path)
    [found] = repair(store, "binance", "BTC/USDT")
    assert (found.path, found.kind, found.aside) == (SEALED, "sealed", f"{SEALED}.corrupt")
    assert found.claimed == (span(0, SLOTS),)
    after = store.rows(BTC, at(0), at(SLOTS)).to_pylist()
    lost = {row["ts"] for row in after if row["gap_reason"] == "missing"}
    assert len(lost) == GROUP
    # A quiet slot behind the hole carries another close now: it is compared without its price.
    assert [bar_of(row) for row in after if row["ts"] not in lost] == [
        bar_of(row) for row in before if row["ts"] not in lost
    ]
    assert after[4]["ver"] == 2, "its older version is still known"
    assert not repair(opened(tmp_path), "binance", "BTC/USDT"), "a second one finds nothing"


def test_a_sealed_file_without_a_footer_is_rebuilt_from_the_tail(tmp_path: Path) -> None:
    before = filled(tmp_path, tail_days=1).rows(BTC, at(0), at(SLOTS)).to_pylist()
    data = (tmp_path / SEALED).read_bytes()
    damage(tmp_path, SEALED, footer_span(data).start + 20)
    store = opened(tmp_path, tail_days=1)
    [found] = repair(store, "binance", "BTC/USDT")
    assert found.claimed == ()
    bars_before = [row for row in before if not row["is_gap"]]
    assert found.rows == len(bars_before)
    after = store.rows(BTC, at(0), at(SLOTS)).to_pylist()
    assert [row for row in after if not row["is_gap"]] == bars_before
    quiet = {row["gap_reason"] for row in after if row["is_gap"]}
    assert quiet == {"missing"}, "the tail does not say whether an empty slot was asked for"


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    damage(tmp_path, SEALED)
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    [found] = repair(opened(tmp_path), "binance", "BTC/USDT", dry_run=True)
    assert found.aside is None
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


@pytest.mark.parametrize("name", ["5m.parquet", "1h.parquet", "tail/1m.tail.parquet"])
def test_a_damaged_copy_is_made_again(tmp_path: Path, name: str) -> None:
    filled(tmp_path, tail_days=1)
    file = tmp_path / FOLDER / name
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    [found] = repair(opened(tmp_path, tail_days=1), "binance", "BTC/USDT")
    assert found.kind == ("tail" if "tail" in name else "copy")
    assert file.read_bytes() == whole


def test_a_damaged_checksum_is_written_again(tmp_path: Path) -> None:
    filled(tmp_path)
    file = tmp_path / f"{SEALED}.sha256"
    whole = file.read_bytes()
    for damaged in (flip(whole, 3), b"", whole[:20]):
        file.write_bytes(damaged)
        assert not repair(opened(tmp_path), "binance", "BTC/USDT")
        assert file.read_bytes() == whole


def test_older_versions_that_can_be_read_are_kept(tmp_path: Path) -> None:
    store = filled(tmp_path)
    late = dict.fromkeys(range(3 * GROUP + 1, 3 * GROUP + 9), 7.0)
    store.append_page(BTC, bars(late), span(3 * GROUP + 1, 3 * GROUP + 9), fence=1, known_at=2)
    store.compact(BTC)
    before = store.rows(BTC, at(0), at(GROUP), as_of=1).to_pylist()
    path = f"{FOLDER}/versions/1m.parquet"
    data = (tmp_path / path).read_bytes()
    damage(tmp_path, path, page_place(data, group=1))
    again = opened(tmp_path)
    [found] = repair(again, "binance", "BTC/USDT")
    assert (found.kind, found.rows) == ("versions", 1)
    assert again.rows(BTC, at(0), at(GROUP), as_of=1).to_pylist() == before
    assert again.rows(BTC, at(5), at(6))["ver"].to_pylist() == [2]


def test_damaged_parts_refused_rows_and_foreign_files_are_set_aside(tmp_path: Path) -> None:
    store = opened(tmp_path)
    page = store.append_page(BTC, bars({0: 1.0}), span(0, 1), fence=1, known_at=1)
    pages = [Page.of(each, bars({1: 1.0}), span(1, 2), fence=1, known_at=1) for each in (BTC, ETH)]
    group = store.append_group(pages)
    rejected = [Rejected("ohlc", at(3), (at(3), 1, 1))]
    refused = store.quarantine(BTC, rejected, fence=1, known_at=1)
    assert page
    assert group
    assert refused
    store.append_page(BTC, bars({2: 1.0}), span(2, 3), fence=1, known_at=1)
    foreign = f"{FOLDER}/4h.parquet"
    (tmp_path / foreign).write_bytes(b"")
    for path in (page, group, refused):
        damage(tmp_path, path, 40)
    again = opened(tmp_path)
    found = repair_groups(again, "binance") + repair(again, "binance", "BTC/USDT")
    assert {each.path for each in found} == {page, group, refused, foreign}
    assert [each.claimed for each in found if each.path == page] == [(span(0, 1),)]
    assert asides(tmp_path) == sorted(f"{path}.corrupt" for path in (page, group, refused, foreign))
    assert again.covered(BTC) == (Interval(at(2), at(3)),)


def test_the_sound_trades_of_a_damaged_day_are_kept(tmp_path: Path) -> None:
    store = opened(tmp_path)
    told = [Trade(str(n), at(0) + n, 1.0 + n, 1.0, "buy") for n in range(30)]
    append_trades(store.storage, "binance", "BTC/USDT", told, known_at=1)
    [path] = [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("trades/*.parquet")]
    data = (tmp_path / path).read_bytes()
    damage(tmp_path, path, page_place(data, group=1, column=2))
    [found] = repair(store, "binance", "BTC/USDT")
    assert (found.kind, found.rows) == ("trades", 20)
    left = read_trades(store.storage, "binance", "BTC/USDT", 0, 2**52)["id"].to_pylist()
    assert left == [str(n) for n in range(30) if not 10 <= n < 20]


def test_a_symbol_whose_folder_is_gone_has_nothing_to_repair(tmp_path: Path) -> None:
    store = filled(tmp_path)
    shutil.rmtree(tmp_path / FOLDER)
    assert not repair(store, "binance", "BTC/USDT")


def test_a_damaged_part_of_a_day_of_trades_costs_that_part_alone(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for first in (0, 10):
        told = [Trade(str(n), at(0) + n, 1.0 + n, 1.0, "buy") for n in range(first, first + 10)]
        append_trades(store.storage, "binance", "BTC/USDT", told, known_at=1)
    [path] = [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("trades/parts/*.parquet")]
    damage(tmp_path, path, 40)
    [found] = repair(store, "binance", "BTC/USDT")
    assert (found.path, found.kind) == (path, "trades")
    assert found.claimed == (Interval(at(0) + 10, at(0) + 20),)
    left = read_trades(store.storage, "binance", "BTC/USDT", 0, 2**52)["id"].to_pylist()
    assert left == [str(n) for n in range(10)]


def test_a_damaged_file_of_collected_and_made_bars_is_written_again(tmp_path: Path) -> None:
    store = filled(tmp_path)
    five = replace(BTC, timeframe=Timeframe.parse("5m"))
    store.append_page(five, bars({0: 7.0}), span(0, 5), fence=1, known_at=1)
    store.compact(five)
    file = tmp_path / FOLDER / "whole" / "5m.parquet"
    before = pq.read_table(file)
    assert repair(opened(tmp_path), "binance", "BTC/USDT") == [], "a sound one is left alone"
    damage(tmp_path, f"{FOLDER}/whole/5m.parquet", 40)
    [found] = repair(opened(tmp_path), "binance", "BTC/USDT")
    assert found.kind == "whole"
    assert pq.read_table(file).equals(before)
    assert repair(opened(tmp_path), "binance", "BTC/USDT") == []
