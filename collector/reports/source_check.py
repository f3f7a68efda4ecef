"""Random slots of a series, bars and empty ones, compared with what the exchange serves today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow.compute as pc

from collector.reports.check import Check

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.market.timeframe import Timeframe

SAMPLES = 200
PAGE = 500
"""Bars of one request. Samples that lie this close together share it."""

_COLUMNS = ("o", "h", "l", "c", "v")
_ROUNDING = 1e-9


class FetchBars(Protocol):
    """Requests bars from an exchange: rows of (ts, o, h, l, c, v, ...), through the limiter."""

    async def __call__(
        self, series: Series, since_ms: int, limit: int
    ) -> Sequence[Sequence[float | None]]: ...


class Sample:
    """Up to `size` slots of a calendar, chosen at random and gathered while it is read.

    A bar must equal the exchange's. A slot without a trade must be empty there, too. Missing slots
    and bars that lack some of their minutes cannot be compared.
    """

    def __init__(self, span: Interval, timeframe: Timeframe, size: int, rng: random.Random) -> None:
        slots = timeframe.count(span.from_ms, timeframe.ceil(span.to_ms))
        chosen = sorted(rng.sample(range(slots), min(size, slots)))
        times = [timeframe.shift(span.from_ms, place) for place in chosen]
        self._wanted = np.array(times, dtype=np.int64)
        self._rows: dict[int, tuple[float, ...]] = {}
        self._empty: set[int] = set()

    def add(self, table: pa.Table) -> None:
        """The next rows of the calendar."""
        ts: NDArray[np.int64] = table["ts"].to_numpy()
        rows = table.take(np.flatnonzero(np.isin(ts, self._wanted)))
        bars = rows.filter(pc.invert(rows["is_gap"]))
        columns = [bars[name].to_pylist() for name in _COLUMNS]
        self._rows |= dict(zip(bars["ts"].to_pylist(), zip(*columns, strict=True), strict=True))
        quiet = rows.filter(pc.equal(rows["gap_reason"], "no_trade").fill_null(False))
        self._empty |= set(quiet["ts"].to_pylist())

    def __len__(self) -> int:
        return len(self._rows) + len(self._empty)

    @property
    def wanted(self) -> list[int]:
        """The slots that were chosen, ascending."""
        times: list[int] = self._wanted.tolist()
        return times

    def held(self, times: Sequence[int]) -> list[int]:
        """Those of the times that were gathered and can be compared."""
        return [ts for ts in times if ts in self._rows or ts in self._empty]

    async def compare(self, series: Series, fetch: FetchBars) -> Check:
        """One case for each slot in which the exchange's answer differs."""
        check, timeframe = Check(), series.timeframe
        for near in neighbours(self.held(self.wanted), timeframe.ms):
            limit = timeframe.count(near[0], near[-1]) + 1
            self.judge(check, near, await fetch(series, near[0], limit))
        return check

    def judge(
        self, check: Check, times: Sequence[int], page: Sequence[Sequence[float | None]]
    ) -> None:
        """Records which of the gathered slots differ from an answer that covers them."""
        theirs = {int(row[0]): row[1:6] for row in page if row[0] is not None}
        for ts in times:
            if ts in self._rows:
                self._judge(check, ts, theirs.get(ts))
            elif ts in theirs and theirs[ts][-1]:
                # Some venues fill a quiet slot with a bar without volume; that is no trade either.
                traded = list(theirs[ts])
                check.note(1, [{"ts": ts, "column": None, "stored": None, "source": traded}])

    def _judge(self, check: Check, ts: int, theirs: Sequence[float | None] | None) -> None:
        if theirs is None:
            check.note(1, [{"ts": ts, "column": None, "stored": None, "source": None}])
            return
        for name, stored, actual in zip(_COLUMNS, self._rows[ts], theirs, strict=True):
            if actual is None or not np.isclose(stored, actual, rtol=_ROUNDING, atol=0.0):
                check.note(1, [{"ts": ts, "column": name, "stored": stored, "source": actual}])
                return


def neighbours(times: Sequence[int], step_ms: int) -> Iterator[list[int]]:
    """Ascending times, by the request that fetches their bars."""
    waiting = list(times)
    while waiting:
        near = [ts for ts in waiting if ts < waiting[0] + PAGE * step_ms]
        waiting = waiting[len(near) :]
        yield near
