"""Random bars of a series, compared with what the exchange says today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from collector.reports.check import Check

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from collector.market.interval import Interval
    from collector.market.series import Series

SAMPLES = 200
PAGE = 500
"""Bars of one request. Samples that lie this close together share it."""

_COLUMNS = ("o", "h", "l", "c", "v")
_ROUNDING = 1e-9


class FetchBars(Protocol):
    """Asks an exchange for bars: rows of (ts, o, h, l, c, v, ...), through the limiter."""

    async def __call__(
        self, series: Series, since_ms: int, limit: int
    ) -> Sequence[Sequence[float | None]]: ...


class Sample:
    """Up to `size` bars of a calendar, chosen at random and gathered while it is read."""

    def __init__(self, span: Interval, step_ms: int, size: int, rng: random.Random) -> None:
        slots = range(span.from_ms, span.to_ms, step_ms)
        chosen = sorted(rng.sample(slots, min(size, len(slots))))
        self._wanted = np.array(chosen, dtype=np.int64)
        self._rows: dict[int, tuple[float, ...]] = {}

    def add(self, table: pa.Table) -> None:
        """The next rows of the calendar. Gaps hold nothing to compare."""
        ts: NDArray[np.int64] = table["ts"].to_numpy()
        picked = np.isin(ts, self._wanted) & ~table["is_gap"].to_numpy()
        rows = table.take(np.flatnonzero(picked))
        columns = [rows[name].to_pylist() for name in _COLUMNS]
        self._rows |= dict(zip(rows["ts"].to_pylist(), zip(*columns, strict=True), strict=True))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def wanted(self) -> list[int]:
        """The slots that were chosen, ascending."""
        times: list[int] = self._wanted.tolist()
        return times

    def held(self, times: Sequence[int]) -> list[int]:
        """Those of the times that a gathered bar opens at."""
        return [ts for ts in times if ts in self._rows]

    async def compare(self, series: Series, fetch: FetchBars) -> Check:
        """One case for each bar that the exchange has not, or has otherwise."""
        check, step_ms = Check(), series.timeframe.ms
        for near in neighbours(sorted(self._rows), step_ms):
            limit = (near[-1] - near[0]) // step_ms + 1
            self.judge(check, near, await fetch(series, near[0], limit))
        return check

    def judge(
        self, check: Check, times: Sequence[int], page: Sequence[Sequence[float | None]]
    ) -> None:
        """Notes which of the gathered bars differ from an answer that covers them."""
        theirs = {int(row[0]): row[1:6] for row in page if row[0] is not None}
        for ts in times:
            self._judge(check, ts, theirs.get(ts))

    def _judge(self, check: Check, ts: int, theirs: Sequence[float | None] | None) -> None:
        if theirs is None:
            check.note(1, [{"ts": ts, "column": None, "stored": None, "source": None}])
            return
        for name, stored, said in zip(_COLUMNS, self._rows[ts], theirs, strict=True):
            if said is None or not np.isclose(stored, said, rtol=_ROUNDING, atol=0.0):
                check.note(1, [{"ts": ts, "column": name, "stored": stored, "source": said}])
                return


def neighbours(times: Sequence[int], step_ms: int) -> Iterator[list[int]]:
    """Ascending times, by the request that brings their bars."""
    waiting = list(times)
    while waiting:
        near = [ts for ts in waiting if ts < waiting[0] + PAGE * step_ms]
        waiting = waiting[len(near) :]
        yield near
