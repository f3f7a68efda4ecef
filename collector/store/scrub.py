"""Checks the sealed file of a series that has nothing to merge, and repairs its checksum.

The sealed file and its checksum are two objects, and no medium replaces both at once. A compaction
that dies between the two leaves the checksum of a file that was never put in place. As long as its
parts exist the next compaction writes both again. But another compaction may have merged and
deleted the same parts before: then there is nothing to merge, and that checksum would stay wrong.
So a process that finds nothing to merge reads the file once, and writes the right checksum.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from collector import logs
from collector.store import layout
from collector.store.checksum import checksum, expected_sha256
from collector.store.port import Swapped
from collector.store.verification import check_content

if TYPE_CHECKING:
    from collector.store.port import Storage
    from collector.store.shelf import Shelf
    from collector.store.snapshot import SeriesSnapshot

log = logs.get("collector.store")


def scrub(storage: Storage, shelf: Shelf, snapshot: SeriesSnapshot) -> None:
    """Checks the file in the place of the sealed one, and repairs its checksum. Raises Corrupt.

    A file that this process has found sound before, beside the same checksum, is not read again.
    """
    view, stamp = snapshot.sealed or snapshot.derived, snapshot.sealed_stamp
    if view is None or stamp is None:
        return
    series = snapshot.series
    path, beside = layout.sealed_path(series), layout.checksum_path(series)
    stamps = (stamp, storage.stamp(beside))
    if shelf.is_sound(path, stamps):
        return
    sha256 = storage.sha256(path)
    if sha256 != expected_sha256(storage, series):
        check_content(view.file)
        companion = checksum(series, sha256, view.footer.derived_from)
        # Swapped: the process that replaced the file wrote its checksum too.
        with suppress(Swapped):
            storage.write_beside(path, stamp, companion)
            log.warning("checksum_mended", path=path)
        return
    shelf.note_sound(path, stamps)
