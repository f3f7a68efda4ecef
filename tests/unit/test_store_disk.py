"""The storage port on a local disk: what is durable, and what a failure leaves behind."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collector.errors import StoreError
from collector.store.disk import LocalDisk
from collector.store.lock import held
from collector.store.port import Fault, Swapped, Vanished

if TYPE_CHECKING:
    from collections.abc import Callable

WRITE_FAULTS = [
    Fault.BEFORE_WRITE,
    Fault.MID_WRITE,
    Fault.BEFORE_FSYNC,
    Fault.BEFORE_RENAME,
    Fault.AFTER_RENAME,
    Fault.BEFORE_DIR_FSYNC,
    Fault.AFTER_WRITE,
]
PLACED = {Fault.AFTER_RENAME, Fault.BEFORE_DIR_FSYNC, Fault.AFTER_WRITE}


class Killed(BaseException):
    pass


def dying_at(point: Fault, error: BaseException) -> Callable[[Fault, str], None]:
    def hook(now: Fault, _path: str) -> None:
        if now is point:
            raise error

    return hook


def test_an_object_comes_back_as_it_was_written(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path / "new" / "root")
    disk.write_atomic("a/b/c.bin", b"12345")
    assert disk.read("a/b/c.bin") == b"12345"
    assert disk.open("a/b/c.bin").read() == b"12345"
    assert disk.names("a/b") == ["c.bin"]
    assert disk.folders("a") == ["b"]
    assert disk.names("nowhere") == []
    disk.delete("a/b/c.bin")
    disk.delete("a/b/c.bin")
    assert disk.names("a/b") == []


def test_what_is_not_there_has_vanished(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    assert disk.stamp("x") is None
    with pytest.raises(Vanished):
        disk.read("x")
    with pytest.raises(Vanished):
        disk.open("x")


@pytest.mark.parametrize("point", WRITE_FAULTS)
def test_a_death_shows_the_whole_object_or_none(tmp_path: Path, point: Fault) -> None:
    disk = LocalDisk(tmp_path, dying_at(point, Killed()))
    with pytest.raises(Killed):
        disk.write_atomic("a/x.bin", b"12345678")
    after = LocalDisk(tmp_path)
    assert after.names("a") == (["x.bin"] if point in PLACED else [])
    if point in PLACED:
        assert after.read("a/x.bin") == b"12345678"


@pytest.mark.parametrize("point", WRITE_FAULTS)
def test_a_death_never_harms_the_object_it_replaces(tmp_path: Path, point: Fault) -> None:
    LocalDisk(tmp_path).write_atomic("a/x.bin", b"old")
    disk = LocalDisk(tmp_path, dying_at(point, Killed()))
    with pytest.raises(Killed):
        disk.write_atomic("a/x.bin", b"newer")
    assert LocalDisk(tmp_path).read("a/x.bin") == (b"newer" if point in PLACED else b"old")


@pytest.mark.parametrize("point", WRITE_FAULTS[:4])
def test_a_full_disk_is_a_store_error_and_leaves_nothing_behind(
    tmp_path: Path, point: Fault
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    disk = LocalDisk(tmp_path, dying_at(point, full))
    with pytest.raises(StoreError, match="No space left"):
        disk.write_atomic("a/x.bin", b"12345678")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_bytes_are_synced_before_the_name_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real_fsync, real_replace = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        seen.append(f"sync {os.path.basename(os.readlink(f'/proc/self/fd/{handle}'))}")
        real_fsync(handle)

    def replace(source: Path, target: Path) -> Path:
        seen.append(f"name {target.name}")
        return real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    disk = LocalDisk(tmp_path / "root")
    disk.write_atomic("a/b/x.bin", b"1")
    folders, (file, *rest) = seen[:3], seen[3:]
    # Each new folder is synced into its parent before anything is put inside it.
    assert folders == [f"sync {tmp_path.name}", "sync root", "sync a"]
    assert file.startswith("sync .x.bin.")
    assert rest == ["name x.bin", "sync b"]
    seen.clear()
    disk.write_atomic("a/b/y.bin", b"1")
    assert seen[1:] == ["name y.bin", "sync b"]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    disk.write_atomic("a/x.bin", b"1")
    disk.delete("a/x.bin")
    (tmp_path / "a").rmdir()
    disk.write_atomic("a/y.bin", b"2")
    assert disk.names("a") == ["y.bin"]


def test_a_draft_appears_when_it_is_committed(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    with disk.draft("a/x.bin") as draft:
        draft.sink.write(b"long")
        draft.finish()
        assert disk.names("a") == []
        digest = draft.sha256()
        draft.commit(None, ("a/x.sha", digest.encode()))
    assert disk.names("a") == ["x.bin", "x.sha"]
    assert disk.read("a/x.bin") == b"long"
    assert disk.read("a/x.sha").decode() == hashlib.sha256(b"long").hexdigest()


def test_a_draft_that_is_not_committed_is_thrown_away(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    with disk.draft("a/x.bin") as draft:
        draft.sink.write(b"long")
    with pytest.raises(RuntimeError), disk.draft("a/x.bin"):
        raise RuntimeError
    assert list((tmp_path / "a").iterdir()) == []


def test_a_draft_of_something_replaced_meanwhile_changes_nothing(tmp_path: Path) -> None:
    """A compaction that was frozen must not put its old file over a newer one."""
    disk = LocalDisk(tmp_path)
    disk.write_atomic("a/x.bin", b"first")
    stamp = disk.stamp("a/x.bin")
    with disk.draft("a/x.bin") as draft:
        draft.sink.write(b"stale")
        draft.finish()
        disk.write_atomic("a/x.bin", b"other")
        with pytest.raises(Swapped):
            draft.commit(stamp, ("a/x.sha", b"stale"))
    assert disk.read("a/x.bin") == b"other"
    assert disk.names("a") == ["x.bin"]


def test_a_commit_does_not_wait_for_a_frozen_one(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    with disk.draft("a/x.bin") as draft, held(tmp_path / "a" / ".x.bin.lock"):
        draft.finish()
        with pytest.raises(Swapped, match="held"):
            draft.commit(None)


def test_old_leftovers_are_cleared_and_young_ones_are_not(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path, dying_at(Fault.BEFORE_FSYNC, Killed()))
    with pytest.raises(Killed):
        disk.write_atomic("a/x.bin", b"1")
    (leftover,) = (tmp_path / "a").iterdir()
    born = leftover.stat().st_mtime
    assert disk.clear_temporaries("a", older_than_s=60, now_s=born + 59) == 0
    assert disk.clear_temporaries("a", older_than_s=60, now_s=born + 61) == 1
    assert disk.clear_temporaries("nowhere", older_than_s=60, now_s=born) == 0
    assert list((tmp_path / "a").iterdir()) == []


def test_a_damaged_object_is_set_aside_by_name(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    disk.write_atomic("a/x.bin", b"1")
    assert disk.set_aside("a/x.bin") == "a/x.bin.corrupt"
    assert disk.names("a") == ["x.bin.corrupt"]
