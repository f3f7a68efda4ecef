"""A file answers for itself: one wrong bit, or the file of another series, is found out."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.errors import StoreError
from collector.market.series import Series
from collector.store import compaction
from collector.store import footer as footers
from collector.store.copies import Copies
from collector.store.page import Page
from collector.store.port import Corrupt
from collector.store.store import Store
from collector.store.verification import check_tail
from tests.support.bars import BTC, ETH, at, bars, flat, span
from tests.support.file_damage import (
    NEW_KEYS,
    as_written_before,
    flip,
    footer_span,
    page_place,
    resealed,
    rewritten,
    some_places,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.lakes import Lake

SEALED = "binance/BTC-USDT/1m.parquet"
VERSIONS = "binance/BTC-USDT/versions/1m.parquet"
SLOTS = 40


@pytest.fixture
def _short_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of ten rows, so that a small file has several."""
    monkeypatch.setattr(compaction, "ROWS_PER_GROUP", 10)


def sealed(root: Path | str, series: Series = BTC, price: float = 100.0) -> Store:
    store = Store(root)
    store.append_page(series, flat(0, SLOTS, price), span(0, SLOTS), fence=1, known_at=1)
    store.compact(series)
    return store


def told(store: Store, series: Series = BTC) -> pa.Table:
    return store.rows(series, at(0), at(SLOTS + 10))


def loud_or_equal(root: Path, expected: pa.Table) -> bool:
    """Whether reading named the damage. What it gave without a word is all there was."""
    try:
        rows = told(Store(root))
        ledger = Store(root).covered(BTC)
    except StoreError:
        return True
    assert rows.equals(expected)
    assert ledger == (span(0, SLOTS),)
    return False


@pytest.mark.usefixtures("_short_groups")
def test_no_bit_of_a_sealed_files_footer_can_change_unnoticed(tmp_path: Path) -> None:
    expected = told(sealed(tmp_path))
    data = (tmp_path / SEALED).read_bytes()
    for place, bit in some_places(footer_span(data), 7):
        (tmp_path / SEALED).write_bytes(flip(data, place, bit))
        assert loud_or_equal(tmp_path, expected), (place, bit)


@pytest.mark.usefixtures("_short_groups")
def test_no_bit_of_the_pages_can_change_the_rows_unnoticed(tmp_path: Path) -> None:
    expected = told(sealed(tmp_path))
    data = (tmp_path / SEALED).read_bytes()
    loud = 0
    for place, bit in some_places(range(footer_span(data).start), 5):
        (tmp_path / SEALED).write_bytes(flip(data, place, bit))
        loud += loud_or_equal(tmp_path, expected)
    assert loud


@pytest.mark.usefixtures("_short_groups")
def test_a_file_of_an_earlier_version_reads_and_is_merged(tmp_path: Path) -> None:
    store = sealed(tmp_path)
    expected = told(store)
    file = tmp_path / SEALED
    file.write_bytes(as_written_before(file.read_bytes()))
    file.with_name("1m.parquet.sha256").unlink()
    again = Store(tmp_path)
    assert told(again).equals(expected)
    again.append_page(BTC, flat(SLOTS, 1), span(SLOTS, SLOTS + 1), fence=1, known_at=2)
    assert again.compact(BTC) is not None
    assert len(told(again)) == SLOTS + 1
    assert pq.read_metadata(file).metadata[b"symbol"] == b"BTC/USDT"


@pytest.mark.usefixtures("_short_groups")
def test_an_earlier_footer_is_not_even_parsed_when_its_bytes_are_wrong(tmp_path: Path) -> None:
    """A damaged one can end the process that parses it."""
    sealed(tmp_path)
    file = tmp_path / SEALED
    data = as_written_before(file.read_bytes())
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / f"{SEALED}.sha256").write_text(f"{digest}  1m.parquet\n")
    file.write_bytes(data)
    assert len(told(Store(tmp_path))) == SLOTS
    for place, bit in some_places(footer_span(data), 3):
        file.write_bytes(flip(data, place, bit))
        with pytest.raises(Corrupt):
            told(Store(tmp_path))


@pytest.mark.usefixtures("_short_groups")
@pytest.mark.parametrize("without", [frozenset(), frozenset(NEW_KEYS)])
def test_a_file_with_fewer_bars_than_it_says_is_never_read_or_merged(
    tmp_path: Path, without: frozenset[bytes]
) -> None:
    sealed(tmp_path)
    file = tmp_path / SEALED
    file.write_bytes(rewritten(file.read_bytes(), groups=[0, 1, 3], without=without))
    file.with_name("1m.parquet.sha256").unlink()
    store = Store(tmp_path)
    with pytest.raises(Corrupt):
        told(store)
    store.append_page(BTC, flat(SLOTS, 1), span(SLOTS, SLOTS + 1), fence=1, known_at=2)
    before = file.read_bytes()
    with pytest.raises(Corrupt):
        store.compact(BTC)
    assert file.read_bytes() == before


@pytest.mark.usefixtures("_short_groups")
@pytest.mark.parametrize("checksum", ["there", "lost", "of another file"])
def test_compaction_verifies_what_it_reads(tmp_path: Path, checksum: str) -> None:
    """Rows that no page's checksum covers: the file is sound Parquet, and not what was written."""
    store = sealed(tmp_path)
    file = tmp_path / SEALED
    beside = file.with_name("1m.parquet.sha256")
    wrong = sealed(tmp_path / "other", price=55.0)
    assert wrong.storage.read(SEALED) != file.read_bytes()
    theirs = (tmp_path / "other" / SEALED).read_bytes()
    hashes = [
        pq.read_metadata(pa.BufferReader(each)).metadata[b"data_hash"]
        for each in (theirs, file.read_bytes())
    ]
    file.write_bytes(resealed(theirs, *hashes))
    if checksum == "lost":
        beside.unlink()
    elif checksum == "of another file":
        beside.write_text(f"{'0' * 64}  1m.parquet\n")
    store = Store(tmp_path)
    store.append_page(BTC, flat(SLOTS, 1), span(SLOTS, SLOTS + 1), fence=1, known_at=2)
    before = file.read_bytes()
    with pytest.raises(Corrupt):
        store.compact(BTC)
    assert file.read_bytes() == before


def test_a_checksum_that_came_without_its_file_does_no_harm(tmp_path: Path) -> None:
    """A compaction that died between the two leaves one."""
    store = sealed(tmp_path)
    (tmp_path / f"{SEALED}.sha256").write_text(f"{'0' * 64}  1m.parquet\n")
    store.append_page(BTC, flat(SLOTS, 1), span(SLOTS, SLOTS + 1), fence=1, known_at=2)
    assert store.compact(BTC) is not None
    assert len(told(store)) == SLOTS + 1


def revised(store: Store, series: Series, price: float) -> None:
    for known_at in (1, 2):
        store.append_page(
            series, bars({0: price + known_at}), span(0, 1), fence=1, known_at=known_at
        )
    store.compact(series)


@pytest.mark.parametrize("name", ["1m.parquet", "versions/1m.parquet"])
def test_the_file_of_another_symbol_is_not_read_as_ours(lake: Lake, name: str) -> None:
    store = lake.store()
    revised(store, BTC, 10.0)
    revised(store, ETH, 20.0)
    lake.write(f"binance/BTC-USDT/{name}", lake.read(f"binance/ETH-USDT/{name}"))
    with pytest.raises(Corrupt, match="its symbol is ETH/USDT, not BTC/USDT"):
        lake.store().rows(BTC, at(0), at(1), as_of=1)
    assert lake.store().rows(ETH, at(0), at(1))["o"].to_pylist() == [22.0]


def test_a_file_of_another_timeframe_or_exchange_is_not_read_as_ours(tmp_path: Path) -> None:
    store = Store(tmp_path, copies=Copies((Series.of("x", "A/B", "5m").timeframe,)))
    store.append_page(BTC, flat(0, 60), span(0, 60), fence=1, known_at=1)
    store.compact(BTC)
    folder = tmp_path / "binance" / "BTC-USDT"
    minutes = (folder / "1m.parquet").read_bytes()
    (folder / "1m.parquet").write_bytes((folder / "5m.parquet").read_bytes())
    with pytest.raises(Corrupt, match="its timeframe is 5m, not 1m"):
        told(Store(tmp_path))
    (tmp_path / "bybit" / "BTC-USDT").mkdir(parents=True)
    (tmp_path / "bybit" / "BTC-USDT" / "1m.parquet").write_bytes(minutes)
    with pytest.raises(Corrupt, match="its exchange is binance, not bybit"):
        told(Store(tmp_path), Series.of("bybit", "BTC/USDT", "1m"))


def test_a_part_in_the_wrong_folder_is_nobodys(tmp_path: Path) -> None:
    store = Store(tmp_path)
    page = store.append_page(ETH, flat(0, 3, 20.0), span(0, 3), fence=1, known_at=1)
    group = store.append_group([Page.of(BTC, flat(0, 3), span(0, 3), fence=1, known_at=1)])
    assert page is not None
    assert group is not None
    for path, elsewhere in (
        (page, page.replace("ETH-USDT", "BTC-USDT")),
        (group, group.replace("binance", "bybit")),
    ):
        (tmp_path / elsewhere).parent.mkdir(parents=True)
        (tmp_path / elsewhere).write_bytes((tmp_path / path).read_bytes())
    again = Store(tmp_path)
    assert told(again)["o"].to_pylist() == [100.0] * 3
    assert again.series("bybit") == ()
    again.compact(BTC)
    again.sweep("bybit")
    aside = sorted(path.name for path in tmp_path.rglob("*.corrupt"))
    assert len(aside) == 2


def test_every_file_says_whose_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path, copies=Copies((Series.of("x", "A/B", "5m").timeframe,), tail_days=1))
    revised(store, BTC, 10.0)
    store.append_page(BTC, flat(1, 1), span(1, 2), fence=1, known_at=3)
    kinds = {}
    for file in tmp_path.rglob("*.parquet"):
        said = pq.read_metadata(file).metadata
        kinds[said[b"kind"].decode()] = said
    assert set(kinds) == {"sealed", "derived", "tail", "versions", "part"}
    for kind, said in kinds.items():
        assert said[b"exchange"] == b"binance"
        if kind != "part":
            assert said[b"symbol"] == b"BTC/USDT"
            assert said[b"timeframe"] == (b"5m" if kind == "derived" else b"1m")


damages: dict[str, Callable[[bytes], bytes]] = {
    "cut to zero": lambda _: b"",
    "cut off": lambda data: data[: len(data) // 2],
    "a bit of the footer": lambda data: flip(data, footer_span(data).start + 40),
    "a bit of a page": lambda data: flip(data, page_place(data)),
}


@pytest.mark.parametrize("damage", damages)
def test_bars_are_read_without_their_older_versions(tmp_path: Path, damage: str) -> None:
    """The versions file is opened for what was known at a moment, and when a bar changes again."""
    store = Store(tmp_path)
    revised(store, BTC, 10.0)
    file = tmp_path / VERSIONS
    file.write_bytes(damages[damage](file.read_bytes()))
    store = Store(tmp_path)
    store.append_page(BTC, flat(1, 1), span(1, 2), fence=1, known_at=3)
    rows = store.rows(BTC, at(0), at(2))
    assert rows["o"].to_pylist() == [12.0, 100.0]
    assert rows["ver"].to_pylist() == [2, 1]
    for asked in (1, 3):
        with pytest.raises(Corrupt, match=r"versions/1m\.parquet"):
            store.rows(BTC, at(0), at(2), as_of=asked)
    store.append_page(BTC, bars({0: 13.0}), span(0, 1), fence=1, known_at=4)
    with pytest.raises(Corrupt, match=r"versions/1m\.parquet"):
        store.rows(BTC, at(0), at(2))
    with pytest.raises(Corrupt, match=r"versions/1m\.parquet"):
        store.compact(BTC)


def test_a_piece_of_a_footer_is_never_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parser that is given a piece may ask for any amount of memory, or end the process."""
    store = Store(tmp_path, copies=Copies(tail_days=1))
    store.append_page(BTC, flat(0, 50), span(0, 50), fence=1, known_at=1)
    store.compact(BTC)
    path = "binance/BTC-USDT/tail/1m.tail.parquet"
    whole = (tmp_path / path).read_bytes()
    monkeypatch.setattr(footers.pq, "read_metadata", pytest.fail)
    for place in range(len(whole) - 8, len(whole)):
        for bit in range(8):
            (tmp_path / path).write_bytes(flip(whole, place, bit))
            with pytest.raises(Corrupt):
                check_tail(store.storage, BTC)
