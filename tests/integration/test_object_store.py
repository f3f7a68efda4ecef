"""The object store on a real S3 server: conditions, refusals, and lines that break."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from collector.errors import RetryLater, StoreError
from collector.market.series import Series
from collector.store import bucket as bucket_module
from collector.store import object_store
from collector.store.bucket import ObjectBucket
from collector.store.group_commit import GroupCommit
from collector.store.object_store import ObjectStore
from collector.store.pinned import READ_AHEAD
from collector.store.port import StorageFault, Swapped, Unavailable, Vanished
from tests.support.bars import BTC, at, bars, flat, span
from tests.support.faulty_proxy import FaultyProxy, Trouble, faulty_proxy
from tests.support.lakes import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

SEALED = "binance/BTC-USDT/1m.parquet"
CHECKSUM = f"{SEALED}.sha256"


@pytest.fixture
def here(bucket: Lake) -> Lake:
    """A prefix of its own."""
    return bucket.beside(secrets.token_hex(6))


@pytest.fixture(scope="module")
def proxies(bucket: Lake) -> Iterator[dict[int, FaultyProxy]]:
    """A proxy for clients that send a request once, and one for those that try twice."""
    server = bucket.options.rpartition("=")[2]
    with faulty_proxy(server) as once, faulty_proxy(server) as twice:
        yield {1: once, 2: twice}


@pytest.fixture
def attempts() -> int:
    """How often a request is sent before it counts as failed. Waiting for the next takes long."""
    return 1


@pytest.fixture
def proxy(proxies: dict[int, FaultyProxy], attempts: int) -> FaultyProxy:
    proxies[attempts].rule = lambda _method, _path: None
    return proxies[attempts]


@pytest.fixture
def far(here: Lake, proxy: FaultyProxy, attempts: int, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The same lake through the proxy."""
    for module in (bucket_module, object_store):
        monkeypatch.setattr(module, "ATTEMPTS", attempts)
    return Lake(here.place, f"?scheme=http&endpoint_override={proxy.host}")


def checksum_fits(lake: Lake) -> bool:
    digest = lake.read(CHECKSUM).decode().split()[0]
    return digest == hashlib.sha256(lake.read(SEALED)).hexdigest()


@pytest.mark.parametrize("sealed_before", [False, True])
@pytest.mark.parametrize("path", [SEALED, CHECKSUM])
@pytest.mark.parametrize("point", [StorageFault.BEFORE_RENAME, StorageFault.AFTER_RENAME])
def test_of_two_compactions_that_meet_at_the_swap_nothing_is_lost(
    here: Lake, point: StorageFault, path: str, sealed_before: bool
) -> None:
    """The older one is frozen around each of its last requests while the other finishes."""
    quick = here.store()
    quick.append_page(BTC, bars({0: 1.0}), span(0, 1), fence=1, known_at=1)
    if sealed_before:
        quick.compact(BTC)
        quick.append_page(BTC, bars({0: 2.0}), span(0, 1), fence=1, known_at=2)
    done: list[object] = []

    def meanwhile(now: StorageFault, what: str) -> None:
        if now is point and what == path and not done:
            done.append(True)
            quick.append_page(BTC, bars({1: 7.0}), span(1, 2), fence=1, known_at=3)
            done.append(quick.compact(BTC))

    frozen = here.store(meanwhile)
    if (point, path) == (StorageFault.AFTER_RENAME, SEALED):
        frozen.compact(BTC)
    else:
        with pytest.raises(Swapped):
            frozen.compact(BTC)
    assert len(done) == 2
    assert quick.rows(BTC, at(0), at(9))["o"].to_pylist() == [2.0 if sealed_before else 1.0, 7.0]
    assert checksum_fits(here)
    here.store().compact(BTC)
    assert quick.rows(BTC, at(0), at(9))["o"].to_pylist() == [2.0 if sealed_before else 1.0, 7.0]


def test_a_compaction_that_was_second_puts_the_checksum_back(here: Lake) -> None:
    """Both have put theirs when the first one swaps."""
    ready, go = threading.Event(), threading.Event()

    def first_waits(now: StorageFault, path: str) -> None:
        if now is StorageFault.BEFORE_RENAME and path == SEALED:
            ready.set()
            assert go.wait(30)

    def second_waits(now: StorageFault, path: str) -> None:
        if now is StorageFault.AFTER_RENAME and path == CHECKSUM:
            go.set()
            first.result(30)

    here.store().append_page(BTC, flat(0, 2), span(0, 2), fence=1, known_at=1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(here.store(first_waits).compact, BTC)
        assert ready.wait(30)
        with pytest.raises(Swapped):
            here.store(second_waits).compact(BTC)
    assert checksum_fits(here)
    assert here.store().rows(BTC, at(0), at(2)).num_rows == 2


def test_a_file_that_is_replaced_while_it_is_read_has_vanished(here: Lake) -> None:
    storage = here.storage()
    storage.write_atomic("x", b"a" * (READ_AHEAD + 100))
    file = storage.open("x")
    assert file.read(3) == b"aaa"
    storage.write_atomic("x", b"b" * (READ_AHEAD + 100))
    assert file.read(3) == b"aaa"
    file.seek(READ_AHEAD)
    with pytest.raises(Vanished):
        file.read(50)


def test_a_part_that_goes_between_its_size_and_its_bytes_has_vanished(
    here: Lake, far: Lake, proxy: FaultyProxy
) -> None:
    def merged_first(method: str, path: str) -> Trouble | None:
        if method == "GET" and path.endswith("/x"):
            here.delete("a/x")
        return None

    proxy.rule = merged_first
    here.write("a/x", b"1")
    with pytest.raises(Vanished):
        far.storage().read("a/x")
    here.write("a/x", b"1")
    with pytest.raises(Vanished):
        far.storage().open("a/x").read()


def test_a_long_file_is_read_at_any_place(here: Lake) -> None:
    data = secrets.token_bytes(3 * READ_AHEAD)
    here.write("x", data)
    file = here.storage().open("x")
    assert file.size() == len(data)
    for start, length in ((0, 10), (READ_AHEAD - 5, 10), (5, 2 * READ_AHEAD), (len(data) - 4, 90)):
        assert file.read_at(length, start) == data[start : start + length]


def test_a_bucket_that_is_not_there_does_not_pass_for_an_empty_lake(here: Lake) -> None:
    nowhere = Lake("s3://no-such-bucket/x", here.options)
    for work in (
        lambda: nowhere.store().rows(BTC, at(0), at(1)),
        lambda: nowhere.store().compact(BTC),
        lambda: nowhere.store().append_page(BTC, flat(0, 1), span(0, 1), fence=1, known_at=1),
    ):
        with pytest.raises(StoreError, match=r"(?i)bucket"):
            work()


def test_wrong_keys_are_told_in_one_line_without_them(
    here: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
        patch.setattr(object_store, "bucket_at", ObjectBucket)
        patch.setattr(object_store, "_filesystem", object_store._filesystem.__wrapped__)
        storage = here.storage()
        for work in (
            lambda: storage.write_atomic("x", b"1"),
            lambda: storage.names(""),
            lambda: storage.read("x"),
            lambda: storage.stamp("x"),
            lambda: storage.delete("x"),
        ):
            with pytest.raises(StoreError, match="the object store answered") as told:
                work()
            assert "\n" not in str(told.value)
            assert "not-the-secret" not in str(told.value)
    assert here.everything() == []


@pytest.mark.parametrize("trouble", [Trouble.INTERNAL, Trouble.BUSY, Trouble.LOST, Trouble.CUT])
def test_what_a_server_in_trouble_cannot_do_may_work_later(
    far: Lake, proxy: FaultyProxy, trouble: Trouble
) -> None:
    storage = far.storage()
    storage.write_atomic("a/x", b"1")
    proxy.rule = lambda _method, _path: trouble
    for work in (
        lambda: storage.read("a/x"),
        lambda: storage.names("a"),
        lambda: storage.stamp("a/x"),
        lambda: storage.open("a/x"),
        lambda: storage.delete("a/y"),
        lambda: storage.write_atomic("a/z", b"22"),
    ):
        with pytest.raises(Unavailable, match=r"^\S+: [^\n]+$") as told:
            work()
        assert isinstance(told.value, RetryLater)
    proxy.rule = lambda _method, _path: None
    assert storage.read("a/x") == b"1"


@pytest.mark.parametrize("attempts", [2])
def test_one_refusal_is_not_noticed(far: Lake, proxy: FaultyProxy) -> None:
    refused: set[str] = set()

    def once(method: str, _path: str) -> Trouble | None:
        first = method not in refused
        refused.add(method)
        return Trouble.BUSY if first else None

    proxy.rule = once
    store = far.store()
    store.append_page(BTC, flat(0, 2), span(0, 2), fence=1, known_at=1)
    store.compact(BTC)
    assert store.rows(BTC, at(0), at(2)).num_rows == 2
    assert refused == {"PUT", "GET", "HEAD", "DELETE"}


def test_an_upload_that_is_cut_off_is_not_there_at_all(far: Lake, proxy: FaultyProxy) -> None:
    storage = far.storage()
    storage.write_atomic("a/old", b"old")
    proxy.rule = lambda method, _path: Trouble.CUT if method == "PUT" else None
    for name in ("a/new", "a/old"):
        with pytest.raises(Unavailable):
            storage.write_atomic(name, b"12345678" * 100_000)
    assert far.everything() == ["a/old"]
    assert storage.read("a/old") == b"old"


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_swap_whose_answer_was_lost_was_done(far: Lake, proxy: FaultyProxy) -> None:
    """Asked again, the condition fails on the client's own object."""
    lost: list[str] = []

    def swallow(method: str, path: str) -> Trouble | None:
        if method == "PUT" and path.endswith("1m.parquet") and not lost:
            lost.append(path)
            return Trouble.LOST
        return None

    proxy.rule = swallow
    store = far.store()
    for slot in range(2):
        lost.clear()
        store.append_page(BTC, flat(slot, 1), span(slot, slot + 1), fence=1, known_at=1)
        done = store.compact(BTC)
        assert lost
        assert done is not None
        assert done.rows == slot + 1
    assert not [path for path in far.everything() if "/parts/" in path]
    assert checksum_fits(far)


@pytest.mark.parametrize("trouble", [Trouble.INTERNAL, Trouble.CUT])
def test_a_compaction_that_cannot_swap_changes_nothing(
    far: Lake, proxy: FaultyProxy, trouble: Trouble
) -> None:
    store = far.store()
    store.append_page(BTC, flat(0, 2), span(0, 2), fence=1, known_at=1)
    store.compact(BTC)
    store.append_page(BTC, flat(2, 2), span(2, 4), fence=1, known_at=2)
    before = far.read(SEALED)
    proxy.rule = lambda method, path: (
        trouble if method == "PUT" and path.endswith("1m.parquet") else None
    )
    with pytest.raises(Unavailable):
        store.compact(BTC)
    assert far.read(SEALED) == before
    assert store.rows(BTC, at(0), at(4)).num_rows == 4
    proxy.rule = lambda _method, _path: None
    store.compact(BTC)
    assert store.rows(BTC, at(0), at(4)).num_rows == 4
    assert checksum_fits(far)


def test_trouble_while_a_file_is_read_is_no_damage(far: Lake, proxy: FaultyProxy) -> None:
    """A part that could not be read must not be set aside, nor a sealed file called damaged."""
    far.store().append_page(BTC, flat(0, 2), span(0, 2), fence=1, known_at=1)
    for _ in range(2):
        proxy.rule = lambda method, path: (
            Trouble.BUSY if method == "GET" and path.endswith(".parquet") else None
        )
        with pytest.raises(Unavailable):
            far.store().rows(BTC, at(0), at(2))
        far.store().append_page(BTC, flat(2, 1), span(2, 3), fence=1, known_at=1)
        with pytest.raises(Unavailable):
            far.store().compact(BTC)
        proxy.rule = lambda _method, _path: None
        assert not [path for path in far.everything() if path.endswith(".corrupt")]
        far.store().compact(BTC)


def test_a_server_that_ignores_conditions_is_refused(
    far: Lake, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "bucket_at", ObjectBucket)  # One that has proved nothing yet.
    proxy.rule = lambda method, path: (
        Trouble.AGREEABLE if method == "PUT" and ".guard-" in path else None
    )
    store = far.store()
    store.append_page(BTC, flat(0, 2), span(0, 2), fence=1, known_at=1)
    with pytest.raises(StoreError, match="ignores If-Match"):
        store.compact(BTC)
    assert [re.sub(r"\d.*", "", path) for path in far.everything()] == ["binance/BTC-USDT/parts/"]
    assert far.storage().names("") == []


async def test_everyone_in_a_group_hears_that_it_may_work_later(
    far: Lake, proxy: FaultyProxy
) -> None:
    proxy.rule = lambda _method, _path: Trouble.BUSY
    async with GroupCommit(far.store(), "binance", gather_s=0.0) as commit:
        with pytest.raises(Unavailable):
            await commit.add(BTC, flat(0, 1), span(0, 1), fence=1, known_at=1)


def test_symbols_that_need_care_in_a_url_come_back(here: Lake) -> None:
    odd = Series.of("binance", "kPEPE+é%/USDC:USDC", "1m")
    store = here.store()
    store.append_page(odd, flat(0, 2), span(0, 2), fence=1, known_at=1)
    store.compact(odd)
    assert here.store().series() == (odd,)
    assert store.rows(odd, at(0), at(2)).num_rows == 2
    assert isinstance(store.storage, ObjectStore)
