"""Merging parts into the sealed file of a series.

The order is what makes a crash harmless: older versions first, then the checksum and the sealed
file in one guarded step, then the longer timeframes and the tail, which are copies, and then the
page parts are deleted. After a crash at any point the parts that are left are merged again, and
merging a row twice changes nothing. Group parts are shared, so they stay until `sweep` finds that
every series in them names them in its sealed file's `merged`.

History passes through a window at a time and is never in memory as a whole. Nothing is merged into
a damaged sealed file: the loss would get a valid checksum.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from collector import logs
from collector.durations import DAY_MS
from collector.market.interval import Interval, subtract
from collector.market.series import Series
from collector.store import footer as footers
from collector.store import layout
from collector.store.checksum import checksum
from collector.store.copies import Copies
from collector.store.part import read_part
from collector.store.port import Corrupt, Swapped, Vanished
from collector.store.rows import with_fillers
from collector.store.sealed import SealedWriter
from collector.store.segment import ROWS_PER_GROUP, names_of, schema_of, to_table, writing
from collector.store.snapshot import SeriesSnapshot
from collector.store.verification import check_sealed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from collector.pipeline.fold import Versions
    from collector.store.copies import CopyWriters
    from collector.store.part import PageEntry
    from collector.store.part_index import SeriesKey
    from collector.store.port import Draft, Storage
    from collector.store.sealed import SealedFooter
    from collector.store.shelf import Shelf

log = logs.get("collector.store")

_ATTEMPTS = 20
_WORTH = 50
"""A sealed file is rewritten early when a fiftieth of it is new, so that a growing series costs a
constant number of writes per row.
"""
_OLD_MS = DAY_MS
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

    With `ending` the calendar ends with the last bar, even if answers cover later slots.

    Raises Swapped when another compaction of the series got in between: nothing is lost, and there
    may be nothing left to do.
    """
    for _ in range(_ATTEMPTS):
        with SeriesSnapshot(storage, shelf, series) as snapshot:
            try:
                return _merge(storage, shelf, snapshot, now_ms, copies or Copies(), ending)
            except (Vanished, _Again):
                continue  # Merged by someone else, or about to be set aside: look again.
            finally:
                _set_aside(storage, shelf, snapshot.damaged)
    raise Swapped(f"{series}: parts keep changing under this compaction")


def is_due(snapshot: SeriesSnapshot, now_ms: int) -> bool:
    """Whether there is enough to merge, or it has waited long enough."""
    if _follows_another_calendar(snapshot):
        return True
    parts = snapshot.unmerged()
    if not parts:
        return False
    fresh = sum(page.rows for pages in parts.values() for page in pages)
    if snapshot.sealed is None or fresh * _WORTH >= snapshot.sealed.rows:
        return True
    made = datetime.fromisoformat(snapshot.sealed.footer.generated_at)
    return now_ms - made.timestamp() * 1000 >= _OLD_MS


def _follows_another_calendar(snapshot: SeriesSnapshot) -> bool:
    """Whether the sealed file was written for other opening hours than are known today."""
    sealed = snapshot.sealed
    return sealed is not None and sealed.footer.calendar != snapshot.series.timeframe.calendar_id


def copy_again(
    storage: Storage, shelf: Shelf, snapshot: SeriesSnapshot, now_ms: int, copies: Copies
) -> None:
    """Makes the copies of a series again, from its sealed file as it is."""
    if snapshot.sealed is None:
        return
    sealed = snapshot.sealed.file
    with ExitStack() as stack:
        writers = copies.begin(storage, shelf, snapshot.series, stack)
        for group in range(sealed.groups):
            writers.write(sealed.read([group], names_of(snapshot.series)))
        writers.finish(now_ms, sealed.footer)
        writers.commit()


def sweep(storage: Storage, shelf: Shelf, exchange_id: str, now_ms: int) -> tuple[str, ...]:
    """Deletes the group parts that every series in them has merged; returns their paths.

    Damaged parts are set aside, and what writers that died left behind is removed.
    """
    storage.clear_temporaries(exchange_id, _TEMPORARY_LIFE_S, now_ms / 1000)
    index = shelf.index(exchange_id)
    index.refresh()
    merged: dict[SeriesKey, frozenset[str]] = {}
    swept = []
    for part in index.parts():
        keys = index.keys_in(part)
        for key in keys:
            if key not in merged:
                merged[key] = merged_by(shelf, Series.of(exchange_id, *key))
        if all(part.name in merged[key] for key in keys):
            storage.delete(part.path)
            shelf.forget(part.path)
            swept.append(part.path)
    _set_aside(storage, shelf, index.damaged())
    return tuple(swept)


def _merge(
    storage: Storage,
    shelf: Shelf,
    snapshot: SeriesSnapshot,
    now_ms: int,
    copies: Copies,
    ending: bool,
) -> Compacted | None:
    series = snapshot.series
    parts = snapshot.unmerged()
    covered = snapshot.covered()
    coverage = _until_last_bar(snapshot, covered) if ending else covered
    if not parts and coverage == covered and not _follows_another_calendar(snapshot):
        return None
    if snapshot.sealed is not None:
        check_sealed(storage, series, snapshot.sealed.file)
    with ExitStack() as stack:
        draft = stack.enter_context(storage.draft(layout.sealed_path(series)))
        out = stack.enter_context(writing(draft.sink, schema_of(series)))
        sealed = SealedWriter(draft, series, coverage, out)
        older = _OlderWriter(storage, series, stack)
        longer = copies.begin(storage, shelf, series, stack)
        _write_windows(snapshot, coverage, sealed, older, longer)
        if snapshot.damaged.keys() & parts.keys():
            # It was part of the coverage, which changes without it.
            raise _Again
        footer = sealed.finish(now_ms, _merged_now(snapshot, parts))
        longer.finish(now_ms, footer)
        older.commit(snapshot.versions_stamp)
        draft.commit(snapshot.sealed_stamp, checksum(series, draft.sha256()))
        longer.commit()
    for page in snapshot.pages:
        if page.path in parts:
            storage.delete(page.path)
            shelf.forget(page.path)
    return Compacted(series, sealed.rows, len(parts), footer)


def _until_last_bar(
    snapshot: SeriesSnapshot, covered: tuple[Interval, ...]
) -> tuple[Interval, ...]:
    end_ms = snapshot.end_ms()
    last = snapshot.last_before(end_ms)
    if last is None:
        return covered
    cut_ms = snapshot.series.timeframe.end(int(last.ts[-1]))
    return subtract(covered, [Interval(cut_ms, end_ms)]) if cut_ms < end_ms else covered


def _write_windows(
    snapshot: SeriesSnapshot,
    coverage: tuple[Interval, ...],
    sealed: SealedWriter,
    older: _OlderWriter,
    copies: CopyWriters,
) -> None:
    """The sealed file in a thread of its own: compressing it takes as long as all the rest."""
    before, written = None, Future[None]()
    written.set_result(None)
    with ThreadPoolExecutor(1, "sealed") as beside:
        for window in _windows(snapshot, coverage[-1].to_ms):
            history = snapshot.history(window.from_ms, window.to_ms)
            table = with_fillers(history.current, snapshot.series, window, coverage, before)
            written.result()
            if len(table):
                written = beside.submit(sealed.write, table)
                copies.write(table)
            if len(history.older):
                older.write(history.older)
            if len(history.current):
                before = history.current.rows.batch.take(slice(-1, None))
        written.result()


def _windows(snapshot: SeriesSnapshot, end_ms: int) -> Iterator[Interval]:
    """From the first bar to the end, divided at the fixed boundaries of row groups."""
    start = snapshot.first_ts()
    if start is None:
        return
    length = ROWS_PER_GROUP * snapshot.series.timeframe.ms
    origin = snapshot.series.timeframe.floor(0)
    while start < end_ms:
        cut = start - (start - origin) % length + length
        yield Interval(start, min(cut, end_ms))
        start = cut


def _merged_now(
    snapshot: SeriesSnapshot, parts: dict[str, tuple[PageEntry, ...]]
) -> frozenset[str]:
    """The group parts that exist and are inside the file being written."""
    known = snapshot.sealed.footer.merged if snapshot.sealed is not None else frozenset()
    inside = {path.rpartition("/")[2] for path in parts} | known | snapshot.groups.replaced
    return snapshot.groups.names & inside


def merged_by(shelf: Shelf, series: Series) -> frozenset[str]:
    """The group parts that the series' sealed file holds already and that still exist."""
    try:
        facts, _ = shelf.facts(series)
    except Corrupt:
        return frozenset()
    return frozenset() if facts is None else facts.footer.merged


def _set_aside(storage: Storage, shelf: Shelf, damaged: Iterable[str]) -> None:
    for path in damaged:
        shelf.forget(path)
        try:
            # Reads again: a temporary fault of the medium must not cost a sound part.
            read_part(storage, path)
        except Vanished:
            continue
        except Corrupt as error:
            with suppress(Vanished):
                log.error("part_set_aside", path=storage.set_aside(path), why=error.why)


class _Again(Exception):
    """What was read is no longer valid."""


class _OlderWriter:
    """The versions file, begun when there is something to put in it."""

    def __init__(self, storage: Storage, series: Series, stack: ExitStack) -> None:
        self._storage = storage
        self._series = series
        self._stack = stack
        self._draft: Draft | None = None

    def write(self, versions: Versions) -> None:
        if self._draft is None:
            self._draft = self._stack.enter_context(
                self._storage.draft(layout.versions_path(self._series))
            )
            self._out = self._stack.enter_context(
                writing(self._draft.sink, schema_of(self._series))
            )
        self._out.write_table(to_table(versions, self._series.extra), row_group_size=ROWS_PER_GROUP)
        self._draft.checkpoint()

    def commit(self, expected: str | None) -> None:
        if self._draft is not None:
            footers.close(self._out, self._draft.sink, footers.identity("versions", self._series))
            self._draft.finish()
            self._draft.commit(expected)
