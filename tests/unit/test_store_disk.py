"""The local disk: the order of syncing, locks, and what a death leaves behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collector.errors import StoreError
from collector.store.disk import LocalDisk
from collector.store.lock import held
from collector.store.port import StorageFault, Swapped

if TYPE_CHECKING:
    from collections.abc import Callable


class Killed(BaseException):
    pass


def dying_at(point: StorageFault, error: BaseException) -> Callable[[StorageFault, str], None]:
    def hook(now: StorageFault, _path: str) -> None:
        if now is point:
            raise error

    return hook


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


def test_a_commit_does_not_wait_for_a_frozen_one(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    with disk.draft("a/x.bin") as draft, held(tmp_path / "a" / ".x.bin.lock"):
        draft.finish()
        with pytest.raises(Swapped, match="held"):
            draft.commit(None)


def test_old_leftovers_are_cleared_and_young_ones_are_not(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path, dying_at(StorageFault.BEFORE_FSYNC, Killed()))
    with pytest.raises(Killed):
        disk.write_atomic("a/x.bin", b"1")
    (leftover,) = (tmp_path / "a").iterdir()
    born = leftover.stat().st_mtime
    assert disk.clear_temporaries("a", older_than_s=60, now_s=born + 59) == 0
    assert disk.clear_temporaries("a", older_than_s=60, now_s=born + 61) == 1
    assert disk.clear_temporaries("nowhere", older_than_s=60, now_s=born) == 0
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "a//x", "a/./x", "a/x/", "a/\0x"])
def test_a_path_that_is_not_below_the_root_is_refused(tmp_path: Path, path: str) -> None:
    disk = LocalDisk(tmp_path / "root")
    with pytest.raises(StoreError, match="not a path below"):
        disk.write_atomic(path, b"1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("link", ["a", "a/x.bin"])
def test_links_below_the_root_are_neither_read_nor_written_through(
    tmp_path: Path, link: str
) -> None:
    elsewhere, disk = tmp_path / "elsewhere", LocalDisk(tmp_path / "root")
    disk.write_atomic("a/x.bin", b"private")
    (tmp_path / "root" / link).rename(elsewhere)
    (tmp_path / "root" / link).symlink_to(elsewhere)
    calls: list[Callable[[], object]] = [
        lambda: disk.open("a/x.bin"),
        lambda: disk.read("a/x.bin"),
        lambda: disk.sha256("a/x.bin"),
        lambda: disk.stamp("a/x.bin"),
        lambda: disk.delete("a/x.bin"),
        lambda: disk.set_aside("a/x.bin"),
        lambda: disk.write_atomic("a/x.bin", b"2"),
        lambda: disk.clear_temporaries(link, 0, 0),
        lambda: disk.names(link),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="is a symbolic link"):
            call()
    kept = elsewhere / "x.bin" if link == "a" else elsewhere
    assert kept.read_bytes() == b"private"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "other-disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "other-disk")
    LocalDisk(tmp_path / "root").write_atomic("a/x.bin", b"1")
    assert (tmp_path / "other-disk/a/x.bin").read_bytes() == b"1"
