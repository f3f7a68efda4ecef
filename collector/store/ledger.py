"""What the files alone record about a series: which ranges are covered, and how far work got."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.market.interval import union
from collector.store.coverage import counted, cursor, joined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.store.coverage import Covered, SeriesCursor
    from collector.store.sealed import Sealed
    from collector.store.snapshot import SeriesSnapshot


def coverage_of(snapshot: SeriesSnapshot) -> tuple[Covered, ...]:
    """The covered ranges, ascending, with the number of bars in each."""
    sealed = snapshot.sealed.footer.coverage if snapshot.sealed is not None else ()
    fresh = _fresh_times(snapshot)
    # After the times, so that a part found damaged meanwhile covers nothing.
    parts = snapshot.unmerged()
    if not parts:
        return sealed
    covered = union(c.interval for pages in parts.values() for page in pages for c in page.covered)
    return joined([*sealed, *counted(covered, fresh)])


def cursor_of(snapshot: SeriesSnapshot) -> SeriesCursor | None:
    """Where work stands; None when no answer was ever stored."""
    coverage = coverage_of(snapshot)
    parts = snapshot.unmerged().values()
    lasts = [page.last_ts for pages in parts for page in pages if page.last_ts is not None]
    if snapshot.sealed is not None:
        at = snapshot.sealed.footer.cursor
        if at is not None and at.last_ts is not None:
            lasts.append(at.last_ts)
    return cursor(coverage, max(lasts, default=None))


def _fresh_times(snapshot: SeriesSnapshot) -> NDArray[np.int64]:
    """Opening times of bars that only parts hold, ascending."""
    ts = np.unique(snapshot.part_times())
    if snapshot.sealed is None or not len(ts):
        return ts
    sealed = _sealed_times(snapshot.sealed.file, int(ts[0]), int(ts[-1]) + 1)
    return ts[~np.isin(ts, sealed, assume_unique=True)]


def _sealed_times(sealed: Sealed, from_ms: int, to_ms: int) -> NDArray[np.int64]:
    groups = sealed.overlapping(from_ms, to_ms)
    held = [group for group in groups if sealed.earliest_known_at(group) is not None]
    table = sealed.read(held, ["ts", "known_at"])
    times: NDArray[np.int64] = table["ts"].to_numpy()[table["known_at"].is_valid().to_numpy()]
    return times
