"""A copy of a lake that is being written to, which holds all that was durable when it began.

The order makes that true. Files move on only one way: rows of parts get into sealed files, and only
then the parts are deleted; older versions of bars get into `versions`, and only then the sealed
file is swapped. So parts are copied first, then sealed files, then versions: what has moved
meanwhile is found where it moved to. Parts that are gone when they are copied were merged into
others; listings are repeated until all that was listed could be copied.

Buckets of networks are left out: they are made again from the ledger, which is copied like parts.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from collector.store.checksum import sha256_of
from collector.store.port import Unavailable, Vanished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.store.port import Storage

LEAST_LISTINGS = 2
"""A listing is not one moment: the second finds what was merged while the first was made."""
MOST_LISTINGS = 20
COPIES_OF_ONE = 5
_CHUNK = 4 << 20
_AT_ONCE = 64 << 20
_MERGED_AWAY = re.compile(r"(^|/)(parts|ledger)/")
_LEFT_OUT = re.compile(r"^_history/[^/]+/buckets/")
_VERSIONS = re.compile(r"/versions/")


def files_below(storage: Storage, folder: str = "") -> Iterator[str]:
    """Every file's path, in a fixed order."""
    prefix = f"{folder}/" if folder else ""
    for name in storage.names(folder):
        yield f"{prefix}{name}"
    for name in storage.folders(folder):
        yield from files_below(storage, f"{prefix}{name}")


def copy_lake(source: Storage, target: Storage, prefix: str) -> dict[str, str]:
    """Copies every file below `prefix` of the target; the digest of each by its path."""
    copied: dict[str, str] = {}
    _copy_until_complete(source, target, prefix, copied, _is_part)
    _copy_until_complete(source, target, prefix, copied, _is_sealed)
    _copy_until_complete(source, target, prefix, copied, lambda path: bool(_VERSIONS.search(path)))
    return copied


def copy_file(source: Storage, path: str, target: Storage, to: str) -> str:
    """Copies one file as it was at one moment, and returns its digest. Raises Vanished."""
    with source.open(path) as file:
        if file.size() <= _AT_ONCE:
            data = file.read()
            target.write_atomic(to, data)
            return hashlib.sha256(data).hexdigest()
        digest = hashlib.sha256()
        with target.draft(to) as draft:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                draft.sink.write(chunk)
            draft.finish()
            draft.commit(target.stamp(to))
    return digest.hexdigest()


def _is_part(path: str) -> bool:
    return bool(_MERGED_AWAY.search(path)) and not _LEFT_OUT.match(path)


def _is_sealed(path: str) -> bool:
    others = _MERGED_AWAY.search(path) or _VERSIONS.search(path) or _LEFT_OUT.match(path)
    # A checksum goes with its file.
    return not others and not path.endswith(".sha256")


def _copy_until_complete(
    source: Storage,
    target: Storage,
    prefix: str,
    copied: dict[str, str],
    chosen: Callable[[str], bool],
) -> None:
    for listing in range(1, MOST_LISTINGS + 1):
        complete = True
        for path in files_below(source):
            if not chosen(path) or path in copied:
                continue
            try:
                copied |= _copy_with_checksum(source, target, prefix, path)
            except Vanished:
                complete = False
        if complete and listing >= LEAST_LISTINGS:
            return
    raise Unavailable("files are replaced faster than they can be copied: try again")


def _copy_with_checksum(source: Storage, target: Storage, prefix: str, path: str) -> dict[str, str]:
    """The file, and its checksum if it has one.

    They are replaced one after the other: when they differ, both are copied again. If they still
    differ the file is damaged, and the copy must show that.
    """
    beside = f"{path}.sha256"
    for _ in range(COPIES_OF_ONE):
        digest = copy_file(source, path, target, prefix + path)
        try:
            checksum = source.read(beside)
        except Vanished:
            return {path: digest}
        if sha256_of(checksum) in (None, digest):
            break
    target.write_atomic(prefix + beside, checksum)
    return {path: digest, beside: hashlib.sha256(checksum).hexdigest()}
