"""Whether a file is intact, to the last byte or the last row.

Opening a file checks its footer, and reading a page its checksum. The functions here read all of
it: before a sealed file is merged into a new one, for `validate`, and for `repair`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.store import footer as footers
from collector.store import layout
from collector.store.checksum import expected_sha256
from collector.store.port import Corrupt
from collector.store.segment import SEGMENT_SCHEMA, Segment
from collector.store.signature import DataHash

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.market.series import Series
    from collector.store.port import Storage
    from collector.store.sealed import Sealed


def check_sealed(storage: Storage, series: Series, sealed: Sealed) -> None:
    """Raises Corrupt unless the bytes have their checksum, or the rows are those of the footer.

    A crash between the two leaves a checksum of a file that was never put in place: then the rows
    decide.
    """
    expected = expected_sha256(storage, series)
    if expected is None or storage.sha256(sealed.path) != expected:
        check_content(sealed)


def check_content(sealed: Sealed) -> None:
    """Reads every row. Raises Corrupt unless they are those of the footer."""
    check_rows(sealed, sealed.footer.data_hash)
    bars = sum(sealed.rows_in(group) - sealed.fillers_in(group) for group in range(sealed.groups))
    if not sealed.footer.derived_from and bars != sealed.footer.bars:
        raise Corrupt(sealed.path, f"{bars} bars where there should be {sealed.footer.bars}")


def check_rows(file: Segment, data_hash: str | None = None) -> None:
    """Reads every row. Raises Corrupt when the statistics or the hash of the content differ."""
    digest = DataHash(file.extra)
    for group in range(file.groups):
        digest.update(checked_group(file, group))
    if data_hash is not None and digest.hexdigest() != data_hash:
        raise Corrupt(file.path, "its rows are not what was written")


def checked_group(file: Segment, group: int) -> pa.Table:
    """The rows of one row group. Raises Corrupt when they are not those of the footer."""
    table = file.read([group], [*SEGMENT_SCHEMA.names, *file.extra])
    ts, known_at = table["ts"].to_numpy(), table["known_at"]
    if (int(ts[0]), int(ts[-1])) != file.bounds(group):
        raise Corrupt(file.path, "its times are not those of the footer")
    if known_at.null_count != file.fillers_in(group):
        raise Corrupt(file.path, "its bars are not those of the footer")
    return table


def check_versions(storage: Storage, series: Series) -> None:
    """The file of older versions, whole. Raises Vanished or Corrupt."""
    path = layout.versions_path(series)
    file = Segment.open(storage, path, whose=footers.whose(series))
    try:
        check_rows(file)
    finally:
        file.close()


def check_tail(storage: Storage, series: Series) -> None:
    """The tail, whole. Raises Vanished or Corrupt."""
    file = Segment.open(storage, layout.tail_path(series), whose=footers.whose(series))
    try:
        check_rows(file, file.metadata("data_hash"))
    finally:
        file.close()
