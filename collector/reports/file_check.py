"""The check `files`: whether every file of a series is intact, to the last byte."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from collector.reports.check import Check
from collector.reports.coverage import CoverageCount
from collector.reports.validation import SeriesReport, inspect
from collector.store import inventory
from collector.store.port import Corrupt, Vanished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.market.series import Series
    from collector.reports.expected import Expected
    from collector.reports.validation import Demands
    from collector.store.port import Storage
    from collector.store.store import Store


def inspect_with_files(
    store: Store,
    series: Series,
    demands: Demands,
    expected: Expected,
    *,
    now_ms: int,
    on_rows: Callable[[int], None] | None = None,
) -> SeriesReport:
    """Every check that needs no exchange. For an unreadable series, `files` alone."""
    files = file_check(store.storage, series)
    try:
        report = inspect(store, series, demands, expected, now_ms=now_ms, on_rows=on_rows)
    except Corrupt as error:
        if files.ok:
            files.note(1, [[error.path, error.why]])
        report = SeriesReport(
            series, CoverageCount(series, expected, ()).counted(), {}, over_limit=False
        )
    return report.with_check("files", files)


def file_check(storage: Storage, series: Series) -> Check:
    """Reads every file of the series; examples are path and reason."""
    check = Check()
    for entry in inventory.of_symbol(storage, series.exchange_id, series.symbol):
        if entry.series == series:
            try:
                with suppress(Vanished):  # Merged meanwhile.
                    entry.check()
            except Corrupt as error:
                check.note(1, [[error.path, error.why]])
    return check


def damages(report: SeriesReport) -> Iterator[Corrupt]:
    """What the check found."""
    for path, why in report.checks["files"].examples if "files" in report.checks else ():
        yield Corrupt(path, why)
