"""A network's history as a reader sees it: saved buckets, and the ledger that goes on from them.

A snapshot never changes. It is taken without the writer, and is exact for the ledger's head of that
moment. A file that a later save or merge has removed raises Vanished: take another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from collector.durations import DAY_MS
from collector.history.bucket_columns import BucketColumns
from collector.history.bucket_files import BucketFiles, Manifest, SavedBuckets
from collector.history.engine import History
from collector.history.fold import fold
from collector.history.layout import buckets_folder, ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.month import month_start
from collector.history.replay import follow
from collector.history.windows import ceil, windows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from collector.history.bucket import Bucket
    from collector.history.ledger import Ledger
    from collector.history.pair import Pair
    from collector.store.port import Storage

    class Source(Protocol):
        """Buckets of one pair."""

        name: ClassVar[str]
        """What answers call it."""

        def columns(self, from_ms: int, to_ms: int) -> BucketColumns: ...

        def pieces(self, from_ms: int, to_ms: int) -> Iterator[BucketColumns]: ...

        def before(self, ts: int) -> Bucket | None: ...


LONGEST_CATCH_UP = 1 << 20
"""Rows after the last save beyond which the ledger answers: buckets of a long history that was
never saved, or whose saved buckets are lost, do not fit into memory."""


@dataclass(frozen=True, slots=True)
class Cached:
    """A pair's buckets as they were saved, caught up with the ledger."""

    name: ClassVar = "buckets"
    history: History
    pair: Pair

    def columns(self, from_ms: int, to_ms: int) -> BucketColumns:
        """The buckets that begin in `[from_ms, to_ms)`, ascending."""
        return self.history.columns(self.pair, from_ms, to_ms)

    def pieces(self, from_ms: int, to_ms: int) -> Iterator[BucketColumns]:
        """The same a month at a time, so that years are not in memory at once."""
        for month in self.history.months(self.pair):
            begin, end = max(from_ms, month_start(month)), min(to_ms, month_start(month + 1))
            if begin < end:
                yield self.columns(begin, end)

    def before(self, ts: int) -> Bucket | None:
        """The newest bucket that begins before `ts`."""
        return self.history.before(self.pair, ts)


@dataclass(frozen=True, slots=True)
class Uncached:
    """A pair's buckets, made from the ledger on every request."""

    name: ClassVar = "ledger"
    ledger: Ledger
    pair: Pair
    bucket_ms: int

    def columns(self, from_ms: int, to_ms: int) -> BucketColumns:
        pieces = self.pieces(from_ms, to_ms)
        return BucketColumns.concat([each for each in pieces if len(each)])

    def pieces(self, from_ms: int, to_ms: int) -> Iterator[BucketColumns]:
        first, end = (ceil(ts, self.bucket_ms) for ts in (from_ms, to_ms))
        span = self._span()
        first, end = max(first, span[0]), min(end, span[1])
        for window in windows(first, end, self.bucket_ms, self.ledger.about):
            yield self._made(*window)

    def before(self, ts: int) -> Bucket | None:
        """Looks back a day, and then twice as far each time."""
        first, end = self._span()
        end, buckets = min(end, ceil(ts, self.bucket_ms)), ceil(DAY_MS, self.bucket_ms)
        while end > first:
            begin = max(first, end - buckets)
            found = self.columns(begin, end)
            if len(found):
                return next(iter(found.take(slice(len(found) - 1, None))))
            end, buckets = begin, 2 * buckets
        return None

    def _span(self) -> tuple[int, int]:
        first, end = self.ledger.span or (0, 0)
        return first - first % self.bucket_ms, ceil(end, self.bucket_ms)

    def _made(self, from_ms: int, to_ms: int) -> BucketColumns:
        made = fold(self.ledger.trades(from_ms, to_ms), self.bucket_ms)
        return made.get(self.pair, BucketColumns.empty())


@dataclass(frozen=True, slots=True)
class PairSnapshot:
    """What one pair's history was at the ledger's head."""

    bucket_sec: int
    ledger: Ledger
    source: Source

    @property
    def applied_through(self) -> int:
        return self.ledger.head

    def edge(self, pair: Pair, from_ms: int, to_ms: int) -> BucketColumns:
        """Part of a bucket, from the ledger."""
        if from_ms >= to_ms:
            return BucketColumns.empty()
        made = fold(self.ledger.trades(from_ms, to_ms), self.bucket_sec * 1000)
        return made.get(pair, BucketColumns.empty())


class Snapshots:
    """Takes snapshots of one pair; as long as nothing was written, the same one again."""

    def __init__(
        self, storage: Storage, network: str, pair: Pair, *, cache: bool, bucket_sec: int
    ) -> None:
        """`bucket_sec` is for a network whose saved buckets are lost."""
        self._pair = pair
        self._bucket_sec = bucket_sec
        self._cache = cache
        self._buckets = BucketFiles(storage, buckets_folder(network))
        self._ledger = LedgerFiles(storage, ledger_folder(network))
        self._last: tuple[str | None, PairSnapshot] | None = None

    def take(self) -> PairSnapshot:
        """The newest."""
        stamp = self._buckets.stamp()
        manifest = self._buckets.sound_manifest()
        ledger = self._ledger.view(at_least=manifest.applied_through if manifest else 0)
        if manifest is None:
            # A network without files is empty, whatever its buckets are.
            manifest = Manifest(self._bucket_sec if ledger.segments else 1)
        saved, last = self._last or (None, None)
        if last is not None and (
            # The stamp and the document are two reads: buckets of another length may come between.
            (saved, last.bucket_sec) != (stamp, manifest.bucket_sec)
            or last.applied_through > ledger.head
        ):
            last = None
        if last is not None and last.applied_through == ledger.head:
            return last
        made = self._snapshot(manifest, ledger, last)
        self._last = stamp, made
        return made

    def forget(self) -> None:
        """The last snapshot named a file that is gone."""
        self._last = None

    def _snapshot(
        self, manifest: Manifest, ledger: Ledger, last: PairSnapshot | None
    ) -> PairSnapshot:
        """`last` is an earlier one of the same saved buckets, to go on from."""
        if not self._cache or ledger.rows_after(manifest.applied_through) > LONGEST_CATCH_UP:
            source: Source = Uncached(ledger, self._pair, manifest.bucket_sec * 1000)
        elif last is not None and isinstance(last.source, Cached):
            source = self._followed(last.source.history.copy(), last.applied_through, ledger)
        else:
            stored = SavedBuckets(self._buckets, manifest, ledger)
            history = History(manifest.bucket_sec, stored)
            source = self._followed(history, manifest.applied_through, ledger)
        return PairSnapshot(manifest.bucket_sec, ledger, source)

    def _followed(self, history: History, since: int, ledger: Ledger) -> Cached:
        for _ in follow(history, since, ledger, self._pair):
            pass
        return Cached(history, self._pair)
