"""Files that are not what was written: named, set aside, and fetched again."""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.errors import StoreError
from collector.store import layout
from collector.store.coverage import Covered
from collector.store.page import Page
from collector.store.port import Corrupt, Unavailable
from collector.store.store import Store
from tests.support.bars import BTC, ETH, at, flat, span
from tests.support.file_damage import resealed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.lakes import Lake

PAGES = "binance/BTC-USDT/parts/1m"


def cut_off(data: bytes) -> bytes:
    return data[:-20]


def emptied(_data: bytes) -> bytes:
    return b""


def flipped(data: bytes) -> bytes:
    """One bit of the data itself: the footer still reads."""
    column = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(1)
    place = column.data_page_offset + column.total_compressed_size - 2
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def foreign(_data: bytes) -> bytes:
    return b"PAR1 this is not a table PAR1"


damages = pytest.mark.parametrize("damage", [cut_off, emptied, flipped, foreign])


def three_pages(lake: Lake) -> tuple[Store, str]:
    """Three pages, and the path of the middle one."""
    store = lake.store()
    paths = [
        store.append_page(
            BTC, flat(first, 10), span(first, first + 10), fence=1, known_at=first + 1
        )
        for first in (0, 10, 20)
    ]
    assert paths[1] is not None
    return lake.store(), paths[1]


def harm(lake: Lake, path: str, damage: Callable[[bytes], bytes]) -> None:
    lake.write(path, damage(lake.read(path)))


@damages
def test_the_series_stays_readable_and_the_hole_is_missing(
    lake: Lake, damage: Callable[[bytes], bytes]
) -> None:
    store, middle = three_pages(lake)
    harm(lake, middle, damage)
    reasons = store.rows(BTC, at(0), at(30))["gap_reason"].to_pylist()
    assert reasons == [None] * 10 + ["missing"] * 10 + [None] * 10


@damages
def test_compaction_sets_the_damaged_part_aside_and_goes_on(
    lake: Lake, damage: Callable[[bytes], bytes]
) -> None:
    store, middle = three_pages(lake)
    harm(lake, middle, damage)
    done = store.compact(BTC)
    assert done is not None
    assert done.parts == 2
    assert store.storage.names(PAGES) == [f"{middle.rpartition('/')[2]}.corrupt"]
    assert store.coverage(BTC) == (Covered(at(0), at(10), 10), Covered(at(20), at(30), 10))
    # Fetched again, it is whole again.
    store.append_page(BTC, flat(10, 10), span(10, 20), fence=2, known_at=99)
    assert not any(store.rows(BTC, at(0), at(30))["is_gap"].to_pylist())
    store.compact(BTC)
    assert store.coverage(BTC) == (Covered(at(0), at(30), 30),)


def test_damage_that_shows_only_when_rows_are_read_is_not_counted_as_covered(
    lake: Lake,
) -> None:
    store, middle = three_pages(lake)
    assert store.coverage(BTC) == (Covered(at(0), at(30), 30),)
    harm(lake, middle, flipped)  # This store has seen the footer and believes it.
    done = store.compact(BTC)
    assert done is not None
    assert done.footer.coverage == (Covered(at(0), at(10), 10), Covered(at(20), at(30), 10))
    assert store.storage.names(PAGES) == [f"{middle.rpartition('/')[2]}.corrupt"]


def test_a_series_of_nothing_but_damage_is_empty(lake: Lake) -> None:
    store = lake.store()
    path = store.append_page(BTC, flat(0, 1), span(0, 1), fence=1, known_at=1)
    assert path is not None
    harm(lake, path, emptied)
    assert lake.store().compact(BTC) is None
    assert lake.store().coverage(BTC) == ()


@damages
def test_a_damaged_group_part_is_set_aside_for_everyone(
    lake: Lake, damage: Callable[[bytes], bytes]
) -> None:
    store = lake.store()
    path = store.append_group(
        [Page.of(each, flat(0, 3), span(0, 3), fence=1, known_at=1) for each in (BTC, ETH)]
    )
    assert path is not None
    harm(lake, path, damage)
    store = lake.store()
    assert store.rows(BTC, at(0), at(3)).num_rows == 0
    store.compact(BTC)
    assert store.sweep("binance") == ()
    assert store.storage.names("binance/parts") == [f"{path.rpartition('/')[2]}.corrupt"]
    assert store.coverage(ETH) == ()


def test_the_sweep_finds_damage_too(lake: Lake) -> None:
    store = lake.store()
    path = store.append_group([Page.of(BTC, flat(0, 3), span(0, 3), fence=1, known_at=1)])
    assert path is not None
    harm(lake, path, cut_off)
    assert lake.store().sweep("binance") == ()
    assert store.storage.names("binance/parts") == [f"{path.rpartition('/')[2]}.corrupt"]


@damages
def test_a_damaged_sealed_file_is_named_and_never_replaced(
    lake: Lake, damage: Callable[[bytes], bytes]
) -> None:
    store, _ = three_pages(lake)
    store.compact(BTC)
    sealed = "binance/BTC-USDT/1m.parquet"
    harm(lake, sealed, damage)
    data = lake.read(sealed)
    with pytest.raises(StoreError, match=r"BTC-USDT/1m\.parquet is damaged"):
        store.rows(BTC, at(0), at(30))
    store.append_page(BTC, flat(30, 1), span(30, 31), fence=1, known_at=50)
    with pytest.raises(Corrupt):
        store.compact(BTC)
    assert lake.read(sealed) == data


def test_files_that_are_not_ours_are_left_alone(lake: Lake) -> None:
    store, _ = three_pages(lake)
    for name in ("notes.txt", "5-1-1-a.parquet", "x-y-z-w.parquet", ".DS_Store"):
        lake.write(f"{PAGES}/{name}", b"?")
    assert store.rows(BTC, at(0), at(30)).num_rows == 30
    done = store.compact(BTC)
    assert done is not None
    assert done.parts == 3
    assert len(store.storage.names(PAGES)) == 3


def test_a_part_of_a_later_format_stops_an_older_program_and_is_left_alone(lake: Lake) -> None:
    store, middle = three_pages(lake)
    data = resealed(lake.read(middle), b'{"format":1', b'{"format":9')
    lake.delete(middle)
    path = layout.part_path(PAGES, span(10, 20), 1, "later", data)
    store.storage.write_atomic(path, data)
    for work in (store.compact, store.coverage):
        with pytest.raises(StoreError, match="newer program"):
            work(BTC)
    assert store.storage.read(path) == data
    assert len(store.storage.names(PAGES)) == 3


def test_no_bit_of_a_part_can_change_unnoticed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.append_page(BTC, flat(0, 3), span(0, 5), fence=1, known_at=1)
    assert path is not None
    data = (tmp_path / path).read_bytes()
    for at_byte in range(0, len(data), 41):
        damaged = bytearray(data)
        damaged[at_byte] ^= 1 << (at_byte % 8)
        (tmp_path / path).write_bytes(bytes(damaged))
        assert Store(tmp_path).coverage(BTC) == ()


class Failing(io.RawIOBase):
    """A file whose medium fails when it is read."""

    def __init__(self, code: int) -> None:
        self._code = code

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return 1_000

    def tell(self) -> int:
        return 1_000

    def read(self, size: int | None = -1) -> bytes:
        raise OSError(self._code, os.strerror(self._code))


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE])
def test_a_medium_that_fails_for_a_moment_costs_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    store = Store(tmp_path)
    store.append_page(BTC, flat(0, 3), span(0, 3), fence=1, known_at=1)
    store.append_group([Page.of(BTC, flat(3, 3), span(3, 6), fence=1, known_at=1)])
    with monkeypatch.context() as patch:
        patch.setattr(store.storage, "open", lambda path: pa.PythonFile(Failing(code), mode="r"))
        for work in (store.compact, store.coverage, lambda series: store.rows(series, 0, at(9))):
            with pytest.raises(Unavailable):
                work(BTC)
    assert not list(tmp_path.rglob("*.corrupt"))
    assert store.compact(BTC) is not None
    assert store.coverage(BTC) == (Covered(at(0), at(6), 6),)


def test_a_part_is_looked_at_once_more_before_it_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that came wrong once, by a cable or a memory, are not the part's fault."""
    store = Store(tmp_path)
    path = store.append_page(BTC, flat(0, 3), span(0, 3), fence=1, known_at=1)
    read, wrong = store.storage.read, []

    def wrong_once(asked: str) -> bytes:
        data = read(asked)
        if asked == path and not wrong:
            wrong.append(asked)
            return flipped(data)
        return data

    monkeypatch.setattr(store.storage, "read", wrong_once)
    store.compact(BTC)
    assert wrong
    assert not list(tmp_path.rglob("*.corrupt"))
    store.compact(BTC)
    assert store.coverage(BTC) == (Covered(at(0), at(3), 3),)
