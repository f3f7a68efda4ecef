"""Merging parts into the sealed file of a series.

The order is what makes a crash harmless: older versions first, then the checksum and the sealed
file in one guarded step, then the longer timeframes and the tail, which are copies, and then the
page parts are deleted. Whatever is cut off leaves parts behind
that are merged again, and folding a sighting twice changes nothing. Group parts are shared, so they
stay until `sweep` finds that every series in them names them in its sealed file's `merged`.

History passes through a window at a time and never lies in memory as a whole.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from collector import logs
from collector.market.interval import Interval, subtract
from collector.market.series import Series
from collector.store import layout
from collector.store.copies import Copies
from collector.store.port import Corrupt, Swapped, Vanished
from collector.store.rows import with_fillers
from collector.store.sealed import Sealed, SealedWriter
from collector.store.segment import ROWS_PER_GROUP, SEGMENT_SCHEMA, to_table, writing
from collector.store.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.pipeline.fold import Versions
    from collector.store.copies import CopyWriters
    from collector.store.part import PageEntry
    from collector.store.port import Draft, Storage
    from collector.store.sealed import SealedFooter
    from collector.store.shelf import Shelf

log = logs.get("collector.store")

_ATTEMPTS = 20
_WORTH = 50
"""A sealed file is rewritten early when a fiftieth of it is new: then a series that grows costs, in
all, a constant number of writes a row."""
_OLD_MS = 86_400_000
_TEMPORARY_LIFE_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did."""

    series: Series
    rows: int
    parts: int
    footer: SealedFooter


def compact(
    storage: Storage,
    shelf: Shelf,
    series: Series,
    now_ms: int,
    copies: Copies | None = None,
    *,
    ending: bool = False,
) -> Compacted | None:
    """Merges every part of the series there is; None when there was none. Idempotent.

    With `ending` the calendar ends with the last bar, whatever was asked for behind it.

    Raises Swapped when another compaction of the series got in between: nothing is lost, and there
    may be nothing left to do.
    """
    folders = (layout.symbol_folder(series), layout.pages_folder(series))
    for folder in folders:
        storage.clear_temporaries(folder, _TEMPORARY_LIFE_S, now_ms / 1000)
    for _ in range(_ATTEMPTS):
        with Snapshot(storage, shelf, series) as snapshot:
            try:
                return _merge(storage, shelf, snapshot, now_ms, copies or Copies(), ending)
            except (Vanished, _Again):
                continue  # Merged by someone else, or about to be set aside: look again.
            finally:
                _set_aside(storage, shelf, snapshot)
    raise Swapped(f"{series}: parts keep changing under this compaction")


def is_due(snapshot: Snapshot, now_ms: int) -> bool:
    """Whether there is enough to merge, or it has waited long enough."""
    parts = snapshot.unmerged()
    if not parts:
        return False
    fresh = sum(page.rows for pages in parts.values() for page in pages)
    if snapshot.sealed is None or fresh * _WORTH >= snapshot.sealed.rows:
        return True
    made = datetime.fromisoformat(snapshot.sealed.footer.generated_at)
    return now_ms - made.timestamp() * 1000 >= _OLD_MS


def copy_again(
    storage: Storage, shelf: Shelf, snapshot: Snapshot, now_ms: int, copies: Copies
) -> None:
    """Makes the copies of a series again, from its sealed file as it is."""
    sealed = snapshot.sealed
    if sealed is None:
        return
    with ExitStack() as stack:
        writers = copies.begin(storage, shelf, snapshot.series, stack)
        for group in range(sealed.groups):
            writers.write(sealed.read([group], SEGMENT_SCHEMA.names))
        writers.finish(now_ms, sealed.footer)
        writers.commit()


def sweep(storage: Storage, shelf: Shelf, exchange_id: str) -> tuple[str, ...]:
    """Deletes the group parts that every series in them has merged; returns their paths."""
    merged: dict[tuple[str, str], frozenset[str]] = {}
    folder = layout.groups_folder(exchange_id)
    swept = []
    for name in storage.names(folder):
        path = f"{folder}/{name}"
        if layout.parse_part(folder, name) is None:
            continue
        try:
            keys = set(shelf.part(path).series())
        except Vanished:
            continue
        except Corrupt as error:
            log.error("part_damaged", path=storage.set_aside(path), why=str(error))
            continue
        for key in keys - merged.keys():
            merged[key] = merged_by(storage, Series.of(exchange_id, *key))
        if all(name in merged[key] for key in keys):
            storage.delete(path)
            shelf.forget(path)
            swept.append(path)
    return tuple(swept)


def _merge(
    storage: Storage,
    shelf: Shelf,
    snapshot: Snapshot,
    now_ms: int,
    copies: Copies,
    ending: bool,
) -> Compacted | None:
    series = snapshot.series
    parts = snapshot.unmerged()
    told = snapshot.covered()
    coverage = _until_last_bar(snapshot, told) if ending else told
    if not parts and coverage == told:
        return None
    with ExitStack() as stack:
        draft = stack.enter_context(storage.draft(layout.sealed_path(series)))
        out = stack.enter_context(writing(draft.sink, SEGMENT_SCHEMA))
        sealed = SealedWriter(draft, series, coverage, out)
        older = _OlderWriter(storage, series, stack)
        longer = copies.begin(storage, shelf, series, stack)
        _write_windows(snapshot, coverage, sealed, older, longer)
        if snapshot.damaged.keys() & parts.keys():
            # It counted in the coverage. Without it the coverage is another one.
            raise _Again
        footer = sealed.finish(now_ms, _merged_now(snapshot, parts))
        longer.finish(now_ms, footer)
        older.commit(snapshot.versions_stamp)
        checksum = f"{draft.sha256()}  {series.timeframe}.parquet\n".encode()
        draft.commit(snapshot.sealed_stamp, (layout.checksum_path(series), checksum))
        longer.commit()
    for page in snapshot.pages:
        if page.path in parts:
            storage.delete(page.path)
            shelf.forget(page.path)
    return Compacted(series, sealed.rows, len(parts), footer)


def _until_last_bar(snapshot: Snapshot, covered: tuple[Interval, ...]) -> tuple[Interval, ...]:
    end_ms = snapshot.end_ms()
    last = snapshot.last_before(end_ms)
    if last is None:
        return covered
    cut_ms = int(last.ts[-1]) + snapshot.series.timeframe.ms
    return subtract(covered, [Interval(cut_ms, end_ms)]) if cut_ms < end_ms else covered


def _write_windows(
    snapshot: Snapshot,
    coverage: tuple[Interval, ...],
    sealed: SealedWriter,
    older: _OlderWriter,
    copies: CopyWriters,
) -> None:
    before = None
    for window in _windows(snapshot, coverage[-1].to_ms):
        history = snapshot.history(window.from_ms, window.to_ms)
        table = with_fillers(history.current, snapshot.series, window, coverage, before)
        if len(table):
            sealed.write(table)
            copies.write(table)
        if len(history.older):
            older.write(history.older)
        if len(history.current):
            before = history.current.rows.batch.take(slice(-1, None))


def _windows(snapshot: Snapshot, end_ms: int) -> Iterator[Interval]:
    """From the first bar to the end, cut where row groups are cut, which never moves."""
    start = snapshot.first_ts()
    if start is None:
        return
    length = ROWS_PER_GROUP * snapshot.series.timeframe.ms
    origin = snapshot.series.timeframe.floor(0)
    while start < end_ms:
        cut = start - (start - origin) % length + length
        yield Interval(start, min(cut, end_ms))
        start = cut


def _merged_now(snapshot: Snapshot, parts: dict[str, tuple[PageEntry, ...]]) -> frozenset[str]:
    """The group parts that exist and are inside the file being written."""
    known = snapshot.sealed.footer.merged if snapshot.sealed is not None else frozenset()
    names = ((group.path, group.path.rpartition("/")[2]) for group in snapshot.groups)
    return frozenset(name for path, name in names if path in parts or name in known)


def merged_by(storage: Storage, series: Series) -> frozenset[str]:
    """The group parts that the series' sealed file holds already, as far as they still exist."""
    try:
        sealed = Sealed.open(storage, layout.sealed_path(series))
    except (Vanished, Corrupt):
        return frozenset()
    try:
        return sealed.footer.merged
    except Corrupt:
        return frozenset()
    finally:
        sealed.close()


def _set_aside(storage: Storage, shelf: Shelf, snapshot: Snapshot) -> None:
    for path in snapshot.damaged:
        shelf.forget(path)
        try:
            log.error("part_set_aside", path=storage.set_aside(path))
        except Vanished:
            continue


class _Again(Exception):
    """What was read does not stand any more."""


class _OlderWriter:
    """The versions file, begun when there is something to put in it."""

    def __init__(self, storage: Storage, series: Series, stack: ExitStack) -> None:
        self._storage = storage
        self._path = layout.versions_path(series)
        self._stack = stack
        self._draft: Draft | None = None

    def write(self, versions: Versions) -> None:
        if self._draft is None:
            self._draft = self._stack.enter_context(self._storage.draft(self._path))
            self._out = self._stack.enter_context(writing(self._draft.sink, SEGMENT_SCHEMA))
        self._out.write_table(to_table(versions), row_group_size=ROWS_PER_GROUP)
        self._draft.checkpoint()

    def commit(self, expected: str | None) -> None:
        if self._draft is not None:
            self._out.close()
            self._draft.finish()
            self._draft.commit(expected)
