"""The storage port, on each medium: an object is there as a whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from collector.store.port import StorageFault, Swapped, Unavailable, Vanished

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.lakes import Lake

WRITE_FAULTS = [
    StorageFault.BEFORE_WRITE,
    StorageFault.MID_WRITE,
    StorageFault.BEFORE_FSYNC,
    StorageFault.BEFORE_RENAME,
    StorageFault.AFTER_RENAME,
    StorageFault.BEFORE_DIR_FSYNC,
    StorageFault.AFTER_WRITE,
]
PLACED = {StorageFault.AFTER_RENAME, StorageFault.BEFORE_DIR_FSYNC, StorageFault.AFTER_WRITE}


class Killed(BaseException):
    pass


def dying_at(point: StorageFault, error: BaseException) -> Callable[[StorageFault, str], None]:
    def hook(now: StorageFault, _path: str) -> None:
        if now is point:
            raise error

    return hook


def test_an_object_comes_back_as_it_was_written(lake: Lake) -> None:
    storage = lake.beside("new").storage()
    storage.write_atomic("a/b/c.bin", b"12345")
    assert storage.read("a/b/c.bin") == b"12345"
    assert storage.open("a/b/c.bin").read() == b"12345"
    assert storage.names("a/b") == ["c.bin"]
    assert storage.folders("a") == ["b"]
    assert storage.names("nowhere") == []
    storage.delete("a/b/c.bin")
    storage.delete("a/b/c.bin")
    assert storage.names("a/b") == []


def test_what_is_not_there_has_vanished(lake: Lake) -> None:
    storage = lake.storage()
    assert storage.stamp("x") is None
    with pytest.raises(Vanished):
        storage.read("x")
    with pytest.raises(Vanished):
        storage.open("x")


@pytest.mark.parametrize("point", WRITE_FAULTS)
def test_a_death_shows_the_whole_object_or_none(lake: Lake, point: StorageFault) -> None:
    storage = lake.storage(dying_at(point, Killed()))
    with pytest.raises(Killed):
        storage.write_atomic("a/x.bin", b"12345678")
    after = lake.storage()
    assert after.names("a") == (["x.bin"] if point in PLACED else [])
    if point in PLACED:
        assert after.read("a/x.bin") == b"12345678"


@pytest.mark.parametrize("point", WRITE_FAULTS)
def test_a_death_never_harms_the_object_it_replaces(lake: Lake, point: StorageFault) -> None:
    lake.storage().write_atomic("a/x.bin", b"old")
    storage = lake.storage(dying_at(point, Killed()))
    with pytest.raises(Killed):
        storage.write_atomic("a/x.bin", b"newer")
    assert lake.storage().read("a/x.bin") == (b"newer" if point in PLACED else b"old")


@pytest.mark.parametrize("point", WRITE_FAULTS[:4])
def test_a_full_disk_passes_and_leaves_nothing_behind(lake: Lake, point: StorageFault) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    storage = lake.storage(dying_at(point, full))
    with pytest.raises(Unavailable, match="No space left"):
        storage.write_atomic("a/x.bin", b"12345678")
    assert lake.everything() == []


def test_a_draft_appears_when_it_is_committed(lake: Lake) -> None:
    storage = lake.storage()
    with storage.draft("a/x.bin") as draft:
        draft.sink.write(b"long")
        draft.finish()
        assert storage.names("a") == []
        digest = draft.sha256()
        draft.commit(None, ("a/x.sha", digest.encode()))
    assert storage.names("a") == ["x.bin", "x.sha"]
    assert storage.read("a/x.bin") == b"long"
    assert storage.read("a/x.sha").decode() == hashlib.sha256(b"long").hexdigest()


def test_a_draft_that_is_not_committed_is_thrown_away(lake: Lake) -> None:
    storage = lake.storage()
    with storage.draft("a/x.bin") as draft:
        draft.sink.write(b"long")
    with pytest.raises(RuntimeError), storage.draft("a/x.bin"):
        raise RuntimeError
    assert lake.everything() == []


def test_a_draft_of_something_replaced_meanwhile_changes_nothing(lake: Lake) -> None:
    """A compaction that was frozen must not put its old file over a newer one."""
    storage = lake.storage()
    storage.write_atomic("a/x.bin", b"first")
    stamp = storage.stamp("a/x.bin")
    with storage.draft("a/x.bin") as draft:
        draft.sink.write(b"stale")
        draft.finish()
        storage.write_atomic("a/x.bin", b"other")
        with pytest.raises(Swapped):
            draft.commit(stamp, ("a/x.sha", b"stale"))
    assert storage.read("a/x.bin") == b"other"
    assert storage.names("a") == ["x.bin"]


def test_a_damaged_object_is_set_aside_by_name(lake: Lake) -> None:
    storage = lake.storage()
    storage.write_atomic("a/x.bin", b"1")
    assert storage.set_aside("a/x.bin") == "a/x.bin.corrupt"
    assert storage.names("a") == ["x.bin.corrupt"]
