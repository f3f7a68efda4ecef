"""The bars of one timeframe, from all that is stored of the symbol, for the length of one read.

What the exchange sent for the timeframe itself comes first. Slots without a whole bar of it are
filled, one by one, with bars made of the shorter timeframes that are stored beside it. Bars made of
minutes are taken from their file as far as it agrees with the minutes.

Every file is looked up once, when the read begins, so that a read of many years shows one moment,
however long it takes. When a compaction deletes a part before it was read, the read looks again. A
long read that has begun leaves out what the first look did not contain, so that nothing changes
half-way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from collector import logs
from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.market.interval import Interval, slots, union
from collector.market.labels import Labels
from collector.market.timeframe import MINUTE
from collector.pipeline.ladder import Graded, Ladder
from collector.pipeline.layers import Layer, overlay
from collector.pipeline.resample import divides
from collector.pipeline.uneven import whole_from, whole_until
from collector.store import derived
from collector.store.port import Corrupt, Unavailable, Vanished
from collector.store.rows import FirstLook, rows
from collector.store.segment import ROWS_PER_GROUP, extra_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from collector.market.series import Series
    from collector.store.snapshot import SeriesSnapshot

    Look = Callable[[Series, bool], SeriesSnapshot]
    """A snapshot of a series; the flag is whether the parts of its exchange were just listed."""

T = TypeVar("T")

log = logs.get("collector.store")

GROUPS_PER_BATCH = 2
"""Row groups of a sealed file that are in memory together: some 5 MB, and ten times that where
parts have to be merged. More are not faster.
"""
_LOOKS = 50
"""Snapshots to try before giving up: each failure means that a compaction got further."""


class SeriesReading:
    """One timeframe of a symbol. A context manager; it holds files open."""

    def __init__(self, look: Look, series: Series, shorter: Sequence[Series]) -> None:
        """`shorter` are series of the same symbol whose bars may make these."""
        self.series = series
        self._look = look
        self._seen: dict[Series, SeriesSnapshot] = {}
        self._firsts: dict[Series, FirstLook] = {}
        """For a long read: what the first snapshot of each series contained."""
        self._later: set[Series] = set()
        """Series that needed a new snapshot since."""
        try:
            for each in (series, *shorter):
                self._seen[each] = look(each, True)
            self._held = [each for each in self._seen if self._read(each, _holds)]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for snapshot in self._seen.values():
            snapshot.close()

    @property
    def is_stored(self) -> bool:
        """Whether there is anything to read, even without a single bar."""
        return bool(self._held) or self._is_copy_alone

    @property
    def _is_copy_alone(self) -> bool:
        """Whether a file of made bars is all that is left of the symbol."""
        return not self._held and self._seen[self.series].derived is not None

    def span(self, *, as_of: int | None = None) -> Interval | None:
        """From the first bar to the calendar's end; None when there are no bars."""
        frame = self.series.timeframe
        if self._is_copy_alone:
            copy = self._seen[self.series].derived
            assert copy is not None
            covered = copy.footer.coverage
            return Interval(covered[0].from_ms, covered[-1].to_ms) if covered else None
        found = []
        for each in self._held:
            first = self._read(each, lambda snapshot: snapshot.first_ts())
            end = self._read(each, lambda snapshot: snapshot.end_ms(as_of))
            end = whole_until(each.timeframe, frame, end)
            first = None if first is None else whole_from(each.timeframe, frame, first)
            if first is not None and first < end:
                found.append(Interval(first, end))
        if not found:
            return None
        return Interval(min(each.from_ms for each in found), max(each.to_ms for each in found))

    def covered(self) -> tuple[Interval, ...]:
        """Every range that answers cover, including answers about shorter bars."""
        covered = (self._read(each, lambda snapshot: snapshot.covered()) for each in self._held)
        return union(interval for intervals in covered for interval in intervals)

    def tables(
        self,
        from_ms: int,
        to_ms: int,
        *,
        as_of: int | None = None,
        columns: Sequence[str] | None = None,
        bars: int | None = None,
    ) -> Iterator[pa.Table]:
        """The calendar of `[from_ms, to_ms)`, ascending, at most `bars` stored bars at a time.

        `columns` are those wanted of CANDLE_SCHEMA and the series' own, or all.
        """
        columns = _names(self.series) if columns is None else columns
        windows = list(self._windows(from_ms, to_ms, bars or GROUPS_PER_BATCH * ROWS_PER_GROUP))
        if len(windows) > 1:
            for each in self._held:
                self._firsts[each] = self._read(each, lambda seen: FirstLook.at(seen, as_of))
        for window in windows:
            yield self._table(window, as_of, columns)

    def _windows(self, from_ms: int, to_ms: int, bars: int) -> Iterator[Interval]:
        """The range, cut into pieces that fit into memory."""
        frame = self.series.timeframe
        stored = min((each.timeframe for each in self._held), default=frame)
        if to_ms - from_ms > bars * stored.ms:
            span = self.span()
            if span is None:
                return
            from_ms, to_ms = max(from_ms, span.from_ms), min(to_ms, span.to_ms)
        length = max(1, bars * stored.ms // frame.ms)
        while from_ms < to_ms:
            cut = min(frame.shift(from_ms, length), to_ms)
            yield Interval(from_ms, cut)
            from_ms = cut

    def _table(self, window: Interval, as_of: int | None, columns: Sequence[str]) -> pa.Table:
        """Only the wanted columns, where one file has them all."""
        series = self.series
        if self._is_copy_alone:
            whole = (window.from_ms, window.to_ms)
            return self._read(series, lambda seen: derived.rows(seen, *whole, columns))
        if self._copied_until(series, as_of) >= window.to_ms:
            ready = self._copied(series, window, columns)
            if ready is not None:
                return ready
        if self._held == [series]:
            return self._stored(series, window, as_of, columns)
        laid = self._layer(series, window, as_of)
        table = laid.batch.to_arrow(laid.source.to_arrow(), laid.ver, series.extra)
        return table.select(columns)

    def _layer(self, series: Series, window: Interval, as_of: int | None) -> Layer:
        """What is stored of the series, its empty slots filled from shorter ones."""
        own = Layer.of_nothing()
        if series in self._held:
            own = _layer_of(self._stored(series, window, as_of, _names(series)))
        wanted = slots(window, series.timeframe)
        if wanted is None:
            return own
        for source in self._sources(series):
            if own.is_whole_over(wanted, series.timeframe):
                break
            made = self._made(series, source, wanted, as_of)
            carried = self._close_before(series, (own, made), as_of)
            own = overlay(own, made, series.timeframe, carried)
        return own

    def _sources(self, series: Series) -> list[Series]:
        """Minutes first, because their bars are stored in files; then the longest available.

        Sources that a chosen one is filled from already are left out.
        """
        frame = series.timeframe
        dividing = [e for e in self._held if e.timeframe < frame and divides(e.timeframe, frame)]
        chosen = [each for each in dividing if each.timeframe == MINUTE]
        for each in sorted(dividing, key=lambda each: -each.timeframe.ms):
            if not any(divides(each.timeframe, taken.timeframe) for taken in chosen):
                chosen.append(each)
        return chosen

    def _made(self, series: Series, source: Series, wanted: Interval, as_of: int | None) -> Layer:
        """Bars of the series made from the source's; from their file as far as it agrees."""
        until = self._copied_until(series, as_of) if source.timeframe == MINUTE else 0
        known = min(wanted.to_ms, until)
        if known <= wanted.from_ms:
            return self._resampled(series, source, wanted, as_of)
        ready = self._copied(series, Interval(wanted.from_ms, known), _names(series))
        if ready is None:
            return self._resampled(series, source, wanted, as_of)
        if known == wanted.to_ms:
            return _layer_of(ready)
        rest = self._resampled(series, source, Interval(known, wanted.to_ms), as_of)
        return _layer_of(ready).then(rest)

    def _copied(self, series: Series, window: Interval, columns: Sequence[str]) -> pa.Table | None:
        """Rows of the file of made bars; None when it is damaged or was replaced.

        The minutes have all of it.
        """
        try:
            return derived.rows(self._seen[series], window.from_ms, window.to_ms, columns)
        except Vanished:
            self._look_again(series)
            return None
        except Corrupt as error:
            log.warning("copy_damaged", path=error.path, why=error.why)
            return None

    def _resampled(
        self, series: Series, source: Series, wanted: Interval, as_of: int | None
    ) -> Layer:
        shorter = self._layer(source, wanted, as_of)
        frame = series.timeframe
        made = Ladder(source.timeframe, [frame]).climb(Graded(shorter.batch, shorter.ver))[frame]
        return Layer.by(series.exchange_id, made.batch, made.ver)

    def _copied_until(self, series: Series, as_of: int | None) -> int:
        """Up to where the file of made bars agrees with the minutes; 0: never."""
        minutes = next((each for each in self._held if each.timeframe == MINUTE), None)
        if as_of is not None or self._later or minutes is None or series in self._held:
            return 0
        longer = self._seen[series]
        return self._read(minutes, lambda seen: derived.agrees_until(longer, seen))

    def _close_before(
        self, series: Series, layers: Sequence[Layer], as_of: int | None
    ) -> float | None:
        """The last close before the first row of all layers, where they begin with a filler.

        Each layer carries its own last close; that of another may be newer.
        """
        held = [each for each in (series, *self._sources(series)) if each in self._held]
        first = min((int(layer.batch.ts[0]) for layer in layers if len(layer)), default=None)
        if len(held) < 2 or first is None:
            return None
        opening = [each for each in layers if len(each) and int(each.batch.ts[0]) == first]
        if not all(layer.batch.filler[0] for layer in opening):
            return None
        closes: dict[int, float] = {}
        for each in held:
            last = self._read(each, lambda seen: self._last_before(seen, first, as_of))
            if last is not None:
                closes.setdefault(each.timeframe.end(int(last.ts[0])), float(last.c[0]))
        return closes[max(closes)] if closes else None

    def _last_before(
        self, seen: SeriesSnapshot, ts_ms: int, as_of: int | None
    ) -> CandleBatch | None:
        newest = self._firsts[seen.series].newest if seen.series in self._later else None
        known_by = min((each for each in (as_of, newest) if each is not None), default=None)
        return seen.last_before(ts_ms, known_by)

    def _stored(
        self, series: Series, window: Interval, as_of: int | None, columns: Sequence[str]
    ) -> pa.Table:
        def read(seen: SeriesSnapshot) -> pa.Table:
            first = self._firsts[series] if series in self._later else None
            return rows(seen, window.from_ms, window.to_ms, as_of, columns, first)

        return self._read(series, read)

    def _read(self, series: Series, read: Callable[[SeriesSnapshot], T]) -> T:
        for _ in range(_LOOKS):
            try:
                return read(self._seen[series])
            except Vanished:
                self._look_again(series)
        raise Unavailable(f"{series}: parts keep vanishing")

    def _look_again(self, series: Series) -> None:
        before = self._seen[series]
        self._seen[series] = self._look(series, False)
        before.close()
        if series in self._firsts:
            self._later.add(series)


def _holds(seen: SeriesSnapshot) -> bool:
    """Whether anything that an exchange sent is stored."""
    return seen.sealed is not None or bool(seen.unmerged())


def _names(series: Series) -> list[str]:
    return [*CANDLE_SCHEMA.names, *series.extra]


def _layer_of(table: pa.Table) -> Layer:
    ver: NDArray[np.int32] = table["ver"].to_numpy()
    batch = CandleBatch.from_arrow(table, extra_in(table.schema))
    return Layer(batch, ver, Labels.from_arrow(table["source"]))
