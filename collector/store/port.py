"""What the store needs from its medium: a local disk, or an object store.

Objects are named by `/`-separated paths below the store's root. A reader never sees half an object:
it appears whole, or not at all.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from collector.errors import RetryLater, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


class StorageFault(StrEnum):
    """The moments of a write at which a test may raise, or end the process.

    An object store neither syncs nor renames. It passes the same moments, those of the rename
    around the one request that makes the object appear.
    """

    BEFORE_WRITE = "before_write"
    MID_WRITE = "mid_write"
    BEFORE_FSYNC = "before_fsync"
    BEFORE_RENAME = "before_rename"
    AFTER_RENAME = "after_rename"
    BEFORE_DIR_FSYNC = "before_dir_fsync"
    AFTER_WRITE = "after_write"
    BEFORE_DELETE = "before_delete"
    AFTER_DELETE = "after_delete"


if TYPE_CHECKING:
    FaultHook = Callable[[StorageFault, str], None]


def no_fault(_point: StorageFault, _path: str) -> None:
    """Production: nothing is injected."""


def is_below_root(path: str) -> bool:
    """Whether every part of the path is a name, so that it cannot leave the folder it begins in."""
    return "\0" not in path and not {"", ".", ".."}.intersection(path.split("/"))


class Swapped(RetryLater):
    """Another process replaced the object in the meantime. Nothing was changed: start again."""

    code = "store_swapped"


class Unavailable(RetryLater):
    """The disk is full or fails, or the object store is unavailable. Retry later."""

    code = "store_unavailable"
    exit_name = "E_WRITE"
    exit_code = 7


class Vanished(StoreError):
    """The object was there when it was listed and is gone now: it was merged. List again."""


class Corrupt(StoreError):
    """The object is there and is not what was written."""

    def __init__(self, path: str, why: object) -> None:
        super().__init__(f"{path} is damaged: {why} (`collector repair` sets it aside)")
        self.path = path
        self.why = str(why)


class Draft(Protocol):
    """A large object being written out of sight. It appears at `commit`, or never."""

    path: str
    sink: Any
    """A binary file to write to."""

    def checkpoint(self) -> None:
        """Called between two pieces of the object; where tests interrupt a long write."""

    def finish(self) -> None:
        """No more bytes: makes what was written durable. Call once, before `sha256`."""

    def sha256(self) -> str:
        """The digest of the finished object, as sha256sum prints it."""

    def commit(self, expected: str | None, companion: tuple[str, bytes] | None = None) -> None:
        """Replaces the object that `expected` names, and the companion just before it.

        `expected` is the `Storage.stamp` of the old object when it was read, None for no object.
        Raises Swapped, with nothing changed, when that object is no longer the one there.
        """


class Storage(Protocol):
    """Bytes by name.

    An error of the medium is raised as StoreError when an operator has to fix it, and as
    Unavailable when it may be temporary.
    """

    def write_atomic(self, path: str, data: bytes) -> None:
        """Makes the whole object durable under its name before it returns."""

    def draft(self, path: str) -> AbstractContextManager[Draft]:
        """A draft of a large object; leaving the context without `commit` discards it."""

    def write_beside(self, path: str, expected: str, companion: tuple[str, bytes]) -> None:
        """Puts another companion beside the object that the stamp `expected` names.

        Raises Swapped, with nothing changed, when that object is no longer the one there.
        """

    def open(self, path: str) -> Any:
        """A pyarrow file to read from at any place. Raises Vanished when there is none.

        It stays the object that was opened. Where the medium cannot keep that one, a read after
        it was replaced raises Vanished.
        """

    def read(self, path: str) -> bytes:
        """The whole object. Raises Vanished when there is none."""

    def sha256(self, path: str) -> str:
        """The digest of the whole object, as sha256sum prints it. Raises Vanished."""

    def stamp(self, path: str) -> str | None:
        """Something that changes whenever the object does; None when there is no object."""

    def names(self, folder: str) -> list[str]:
        """The names of the objects right inside `folder`, sorted; none when it does not exist."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right inside `folder`, sorted."""

    def delete(self, path: str) -> None:
        """Removes the object. One that is gone already is fine."""

    def set_aside(self, path: str, expected: str | None = None) -> str:
        """Renames a damaged object so that it is not read again; returns its new path.

        Raises Vanished when it is gone, and Swapped, with nothing changed, when it is no longer the
        one that the stamp `expected` names; None means any.
        """

    def clear_temporaries(self, folder: str, older_than_s: float, now_s: float) -> int:
        """Removes what writers that died left below `folder` long ago; returns how many."""
