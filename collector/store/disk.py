"""The storage port on a local disk.

A write is: temporary file, fsync, rename, fsync of the folder. A folder is fsynced into its parent
before this process writes into it, because a file is not durable while its folder can vanish in a
power cut.

Only the root may be a symbolic link. One below it would let whoever put it there, a backup from
elsewhere for example, choose which of the user's files are read and written, so it is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from collector.errors import StoreError
from collector.store.lock import held
from collector.store.port import (
    Draft,
    StorageFault,
    Swapped,
    Unavailable,
    Vanished,
    is_below_root,
    no_fault,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.store.port import FaultHook

_TEMPORARY = ".tmp"


class LocalDisk:
    """Objects as files below `root`. Safe to use from many threads and processes at once."""

    def __init__(self, root: str | os.PathLike[str], faults: FaultHook = no_fault) -> None:
        self.root = Path(root).absolute()
        self._faults = faults
        self._trusted: set[Path] = set()

    def write_atomic(self, path: str, data: bytes) -> None:
        with self._translated(path), self._temporary(path) as (temporary, file):
            half = len(data) // 2
            file.write(data[:half])
            self._faults(StorageFault.MID_WRITE, path)
            file.write(data[half:])
            self._make_durable(path, file)
            self._put(path, temporary)

    @contextlib.contextmanager
    def draft(self, path: str) -> Iterator[Draft]:
        with self._translated(path), self._temporary(path) as (temporary, file):
            yield DiskDraft(self, path, temporary, file)

    def write_beside(self, path: str, expected: str, companion: tuple[str, bytes]) -> None:
        with self._translated(path), self._guarded(path, expected):
            self.write_atomic(*companion)

    def open(self, path: str) -> Any:
        with self._translated(path):
            return pa.OSFile(str(self._place(path)), mode="rb")

    def read(self, path: str) -> bytes:
        with self._translated(path):
            return self._place(path).read_bytes()

    def sha256(self, path: str) -> str:
        with self._translated(path), self._place(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def stamp(self, path: str) -> str | None:
        try:
            stat = self._place(path).stat()
        except FileNotFoundError:
            return None
        return f"{stat.st_ino}-{stat.st_mtime_ns}-{stat.st_size}"

    def names(self, folder: str) -> list[str]:
        return self._listed(folder, files=True)

    def folders(self, folder: str) -> list[str]:
        return self._listed(folder, files=False)

    def delete(self, path: str) -> None:
        # The folder is not fsynced: a part that comes back after a power cut is merged once more,
        # which changes nothing.
        with self._translated(path):
            self._faults(StorageFault.BEFORE_DELETE, path)
            self._place(path).unlink(missing_ok=True)
            self._faults(StorageFault.AFTER_DELETE, path)

    def set_aside(self, path: str, expected: str | None = None) -> str:
        place = self._place(path)
        with self._translated(path), self._guarded(path, expected):
            aside = next(
                name
                for number in itertools.count(1)
                if not self._place(name := _aside(path, number)).exists()
            )
            place.replace(self._place(aside))
            _fsync_folder(place.parent)
        return aside

    @contextlib.contextmanager
    def _guarded(self, path: str, expected: str | None) -> Iterator[None]:
        """While the object is the one that `expected` names; anything, when that is None."""
        if expected is None:
            yield
            return
        with held(self._lock_of(path)):
            if self.stamp(path) != expected:
                raise Swapped(f"{path} was replaced by someone else")
            yield

    def _lock_of(self, path: str) -> Path:
        place = self._place(path)
        return place.with_name(f".{place.name}.lock")

    def clear_temporaries(self, folder: str, older_than_s: float, now_s: float) -> int:
        """Removes what writers that died left below `folder`; returns how many files."""
        cleared = 0
        for place, _, names in os.walk(self._place(folder)):
            for name in names:
                if not name.endswith(_TEMPORARY):
                    continue
                temporary = Path(place, name)
                with contextlib.suppress(FileNotFoundError):
                    if now_s - temporary.stat().st_mtime > older_than_s:
                        temporary.unlink()
                        cleared += 1
        return cleared

    def _place(self, path: str) -> Path:
        """Where the object or folder lies. StoreError when that is not below the root."""
        if not path:
            return self.root
        if not is_below_root(path):
            raise StoreError(f"{path!r} is not a path below {self.root}")
        place = str(self.root)
        for name in path.split("/"):
            place = f"{place}/{name}"
            if os.path.islink(place):
                raise StoreError(f"{place} is a symbolic link: put the files themselves there")
        return Path(place)

    def _listed(self, folder: str, *, files: bool) -> list[str]:
        with self._translated(folder):
            try:
                with os.scandir(self._place(folder)) as entries:
                    names = [entry.name for entry in entries if entry.is_file() == files]
            except FileNotFoundError:
                return []
        return sorted(name for name in names if not name.startswith("."))

    @contextlib.contextmanager
    def _temporary(self, path: str) -> Iterator[tuple[Path, BinaryIO]]:
        """A new file beside `path`. Removed on failure; a process that dies leaves it behind."""
        place = self._place(path)
        temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}{_TEMPORARY}")
        self._faults(StorageFault.BEFORE_WRITE, path)
        try:
            with self._created(temporary) as file:
                yield temporary, file
        except Exception:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)  # A draft that was never committed.

    def _created(self, temporary: Path) -> BinaryIO:
        self._make_folder(temporary.parent)
        try:
            return temporary.open("x+b")
        except FileNotFoundError:
            # The folder was removed since, so the cache of known folders is no longer valid.
            self._trusted.clear()
            self._make_folder(temporary.parent)
            return temporary.open("x+b")

    def _make_folder(self, folder: Path) -> None:
        if folder in self._trusted:
            return
        if folder == self.root:
            folder.parent.mkdir(parents=True, exist_ok=True)
        else:
            self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        # Even when it existed: the process that created it may not have synced it yet.
        _fsync_folder(folder.parent)
        self._trusted.add(folder)

    def _make_durable(self, path: str, file: BinaryIO) -> None:
        file.flush()
        self._faults(StorageFault.BEFORE_FSYNC, path)
        os.fsync(file.fileno())

    def _put(self, path: str, temporary: Path) -> None:
        place = self._place(path)
        self._faults(StorageFault.BEFORE_RENAME, path)
        temporary.replace(place)
        self._faults(StorageFault.AFTER_RENAME, path)
        self._faults(StorageFault.BEFORE_DIR_FSYNC, path)
        _fsync_folder(place.parent)
        self._faults(StorageFault.AFTER_WRITE, path)

    @contextlib.contextmanager
    def _translated(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise Vanished(f"{path} is not there") from error
        except OSError as error:
            # A full disk, a failing one, a folder with the wrong owner: once an operator has fixed
            # it, everything continues by itself.
            raise Unavailable(f"{path}: {error.strerror or error}") from error


class DiskDraft:
    """A temporary file that becomes the object when it is committed."""

    def __init__(self, disk: LocalDisk, path: str, temporary: Path, file: BinaryIO) -> None:
        self.path = path
        self.sink = file
        self._disk = disk
        self._temporary = temporary

    def checkpoint(self) -> None:
        self._disk._faults(StorageFault.MID_WRITE, self.path)

    def finish(self) -> None:
        self._disk._make_durable(self.path, self.sink)

    def sha256(self) -> str:
        with self._temporary.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def commit(self, expected: str | None, companion: tuple[str, bytes] | None = None) -> None:
        # Check and rename must be one step, or a compaction that was frozen for an hour could put
        # an old file over a newer one.
        with held(self._disk._lock_of(self.path)):
            if self._disk.stamp(self.path) != expected:
                raise Swapped(f"{self.path} was replaced by someone else")
            if companion is not None:
                self._disk.write_atomic(*companion)
            self._disk._put(self.path, self._temporary)


def _aside(path: str, number: int) -> str:
    return f"{path}.corrupt" if number == 1 else f"{path}.corrupt-{number}"


def _fsync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows neither opens folders nor needs to: its renames are journalled.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
