"""The one writer of a network: applies ordered events, however often they come and it dies.

A batch is judged, its rows become one segment of the ledger, and then the buckets change. The
segment is the step that counts. Everything before it leaves no trace; everything after it is done
again from the ledger when the writer starts.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.clock import SystemClock
from collector.errors import DataInvalid
from collector.history.batches import batches, check_order
from collector.history.bucket_files import BucketFiles, Manifest, SavedBuckets
from collector.history.counters import Counters
from collector.history.engine import History, PendingChange
from collector.history.event import Op
from collector.history.judging import Candidate, Judge, candidates
from collector.history.layout import buckets_folder, ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.lookup import standing_trades
from collector.history.policy import CrossNet, CrossNetWarnings, Outcome
from collector.history.rebucketing import begun, put_in_place, step, wanted
from collector.history.refusal import SumOverflow
from collector.history.replay import follow, prepare_rows
from collector.history.segment import LEDGER_SCHEMA, ledger_rows
from collector.store.port import Swapped, Vanished

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from collector.clock import Clock
    from collector.history.event import Event
    from collector.history.ledger import Ledger
    from collector.history.pair import Pair
    from collector.store.port import Storage

SAVE_EVERY_SECONDS = 3_600.0
"""A save writes every month that has changed, whole."""
LONGEST_TAIL = 131_072
"""Rows after the last save at which buckets are saved again: what a reader has to catch up with."""


@dataclass
class _State:
    """What is in memory: exact for the ledger's head."""

    manifest: Manifest
    stamp: str | None
    ledger: Ledger
    history: History
    tail: int


class Overtaken(Swapped):
    """A writer with a later fence has taken the files over: this one must not write any more."""


class HistoryWriter:
    """Applies a network's events. Only one may write at a time.

    A writer that opens the files stores its fence in `current.json`. So one that was overtaken
    finds the document replaced before it writes, and its saves are refused. A segment that it had
    begun before that repeats what its successor makes of the same events.
    """

    def __init__(
        self,
        storage: Storage,
        network: str,
        *,
        bucket_sec: int = 60,
        cross_net: CrossNet = CrossNet.REJECT,
        clock: Clock | None = None,
        fence: int = 0,
    ) -> None:
        self.bucket_sec = bucket_sec
        self.fence = fence
        self.buckets = BucketFiles(storage, buckets_folder(network))
        self.ledger_files = LedgerFiles(storage, ledger_folder(network))
        self.counters = Counters()
        self._policy = cross_net
        self._clock = clock or SystemClock()
        self._warnings = CrossNetWarnings(network, self._clock)
        self._state: _State | None = None
        self._next_save = -math.inf

    @property
    def ledger(self) -> Ledger:
        """Everything that was applied."""
        return self._opened().ledger

    @property
    def applied_through(self) -> int:
        return self.ledger.head

    @property
    def history(self) -> History:
        """The buckets in memory, up to `applied_through`."""
        return self._opened().history

    def apply(self, events: Sequence[tuple[int, Event]]) -> Counter[Outcome]:
        """Applies events in ascending order of their sequence; those already applied are skipped.

        When it returns they are durable. When it raises, the same call may be made again.
        """
        check_order([sequence for sequence, _ in events])
        applied: Counter[Outcome] = Counter()
        with self._reopened_on_error():
            for batch in batches(events):
                applied += self._apply(batch)
        return applied

    def save(self) -> None:
        """Saves the buckets, so that a starting process or a reader has less to catch up with."""
        with self._reopened_on_error():
            state = self._opened()
            self._save(state, state.ledger.head)

    def save_seldom(self) -> None:
        """Saves the buckets if anything came since, and this writer has not saved for an hour.

        A writer that was just made saves what it had to catch up with, so that nobody else has to.
        """
        with self._reopened_on_error():
            state = self._opened()
            is_early = self._clock.monotonic() < self._next_save
            if not is_early and (state.tail or state.history.changed()):
                self._save(state, state.ledger.head)

    def rebucket(self) -> bool:
        """One step towards buckets of `bucket_sec`; whether more are to be done.

        Until the last step everything goes on with buckets of the length they have.
        """
        with self._reopened_on_error():
            state = self._opened()
            if state.manifest.bucket_sec == self.bucket_sec:
                return False
            self._check_ours(state)
            prices = state.history.last_prices()
            building = begun(self.buckets, self.bucket_sec, state.ledger.head, prices)
            try:
                building = step(self.buckets, state.ledger, building)
            except SumOverflow as error:
                why = f"buckets of {self.bucket_sec} s cannot hold what was traded: {error}"
                raise DataInvalid(why) from error
            if building.built_to is not None:
                return True
            put_in_place(self.buckets, replace(building, fence=self.fence), state.stamp)
            self._state = None
            return False

    def resume(self, fence: int) -> None:
        """Goes on with another fence; what is in memory stays unless the files were taken over."""
        self.fence = fence
        if self._state is not None and self.buckets.stamp() != self._state.stamp:
            self._state = None

    def _claimed(self) -> tuple[Manifest, str | None]:
        """What is saved, with our fence in it; in a new network a beginning.

        Before anything is swept: what an earlier writer was about to save is refused from now on.
        """
        stamp = self.buckets.stamp()
        manifest = self.buckets.sound_manifest() or Manifest(self.bucket_sec, fence=-1)
        if manifest.fence > self.fence:
            raise Overtaken(f"{self.buckets.folder}: fence {manifest.fence} is after {self.fence}")
        if manifest.fence < self.fence:
            manifest = replace(manifest, fence=self.fence)
            self.buckets.write(manifest, stamp)
            stamp = self.buckets.stamp()
        return manifest, stamp

    def _check_ours(self, state: _State) -> None:
        if self.buckets.stamp() != state.stamp:
            raise Overtaken(f"{self.buckets.folder}: another writer has been here")

    def _opened(self) -> _State:
        if self._state is None:
            manifest, stamp = self._claimed()
            ledger = self.ledger_files.view(at_least=manifest.applied_through)
            self.ledger_files.sweep(ledger)
            following = wanted(self.buckets, manifest, self.bucket_sec)
            self.buckets.sweep([manifest, *([following] if following else [])])
            stored = SavedBuckets(self.buckets, manifest, ledger)
            history = History(manifest.bucket_sec, stored)
            state = _State(manifest, stamp, ledger, history, 0)
            for last, rows in follow(history, manifest.applied_through, ledger):
                state.tail += rows
                if state.tail >= LONGEST_TAIL:
                    self._save(state, last)
            self._state = state
        return self._state

    @contextlib.contextmanager
    def _reopened_on_error(self) -> Iterator[None]:
        """Memory may differ from the files after an error: they are read again."""
        try:
            yield
        except Vanished as error:
            self._state = None
            raise Swapped(f"{error}: another writer has been here") from error
        except BaseException:
            self._state = None
            raise

    def _apply(self, events: Sequence[tuple[int, Event]]) -> Counter[Outcome]:
        state = self._opened()
        fresh = [(sequence, event) for sequence, event in events if sequence > state.ledger.head]
        if not fresh:
            return Counter()
        given, outcomes = candidates(fresh, self._policy)
        for each in given:
            if each.outcome is Outcome.ADDED_CROSS_NET and each.trade is not None:
                self._warnings.warn(each.trade)
        return self._judged(state, given, fresh[-1][0], outcomes)

    def _judged(
        self,
        state: _State,
        given: Sequence[Candidate],
        last: int,
        outcomes: Counter[Outcome],
    ) -> Counter[Outcome]:
        bucket_ms = state.history.bucket_ms
        deletions = [each for each in given if each.op is Op.DELETE]
        standing = standing_trades(state.ledger, bucket_ms, deletions)
        judge = Judge(bucket_ms, standing, functools.partial(_sums, state.history))
        judge.judge(given)
        outcomes += judge.outcomes
        rows = ledger_rows(judge.rows) if judge.rows else LEDGER_SCHEMA.empty_table()
        change = None
        if all(row[2] is Op.ADD for row in judge.rows):
            change = PendingChange()
            prepare_rows(state.history, change, state.ledger, rows)
        self._accept(state, rows, last, change)
        self.counters.count(outcomes)
        return outcomes

    def _accept(
        self, state: _State, rows: pa.Table, last: int, change: PendingChange | None
    ) -> None:
        """Makes rows durable and then the buckets follow. `change` is None: there are deletions."""
        self._check_ours(state)
        state.ledger = self.ledger_files.append(state.ledger, last, rows)
        if change is None:
            change = PendingChange()
            prepare_rows(state.history, change, state.ledger, rows, self.counters, self._clock)
        state.history.commit(change)
        state.tail += len(rows)
        if state.tail >= LONGEST_TAIL:
            self._save(state, state.ledger.head)
        state.ledger = self.ledger_files.merged(state.ledger)

    def _save(self, state: _State, through: int) -> None:
        months = state.history.changed()
        self._next_save = self._clock.monotonic() + SAVE_EVERY_SECONDS
        old = state.manifest
        made = replace(
            self.buckets.with_months(old, months, through),
            applied_through=through,
            last_prices=state.history.last_prices(),
        )
        self.buckets.write(made, state.stamp)
        state.manifest, state.stamp, state.tail = made, self.buckets.stamp(), 0
        state.history.saved(SavedBuckets(self.buckets, made, state.ledger))
        self.buckets.delete(old.paths() - made.paths())


def _sums(history: History, pair: Pair, ts: int) -> tuple[int, int]:
    bucket = history.find(pair, ts)
    return (0, 0) if bucket is None else (bucket.sum_base, bucket.sum_quote)
