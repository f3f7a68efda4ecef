"""A pass over many series: one with a damaged file is left out, and all others go on.

A damaged file waits for `collector repair`. Until then nothing of its series is merged, and nothing
of it counts as missing: what the file held is unknown.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.store.port import Corrupt, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.market.series import Series

FAILURES = 3
"""A medium that fails for so many series in a row fails for all."""

_log = logs.get("workers.upkeep")


class Sparing:
    """Goes over series one after another."""

    def __init__(self) -> None:
        self._failed: Unavailable | None = None
        self._in_a_row = 0

    @contextmanager
    def over(self, series: Series) -> Iterator[None]:
        """Around what is done with one series."""
        try:
            yield
        except Corrupt as error:
            note_damage(series, error)
        except Unavailable as error:
            self._failed = self._failed or error
            self._in_a_row += 1
            if self._in_a_row >= FAILURES:
                raise
        else:
            self._in_a_row = 0

    def finish(self) -> None:
        """Raises what kept a series from being read or written, if anything did."""
        if self._failed is not None:
            raise self._failed


def note_damage(series: Series, error: Corrupt) -> None:
    """One line and one count for a series that was left out."""
    metrics.SERIES_DAMAGED.labels(series.exchange_id).inc()
    _log.error(
        "series_damaged",
        exchange=series.exchange_id,
        symbol=series.symbol,
        timeframe=series.timeframe.name,
        path=error.path,
        why=error.why,
    )
