"""Long ranges in pieces."""

from __future__ import annotations

from collector.history.windows import MOST_ROWS, windows

MINUTE, DAY = 60_000, 86_400_000


def test_a_range_is_cut_into_days_and_busy_days_into_less() -> None:
    quiet = list(windows(0, 2 * DAY + MINUTE, MINUTE, lambda first, end: 1.0))
    assert quiet == [(0, DAY), (DAY, 2 * DAY), (2 * DAY, 2 * DAY + MINUTE)]
    busy = list(windows(0, DAY, MINUTE, lambda first, end: 4 * MOST_ROWS * (end - first) / DAY))
    assert busy == [(n * DAY // 4, (n + 1) * DAY // 4) for n in range(4)]


def test_days_without_rows_are_left_out() -> None:
    found = list(windows(0, 4 * DAY, MINUTE, lambda first, end: float(first == 2 * DAY)))
    assert found == [(2 * DAY, 3 * DAY)]


def test_a_bucket_is_never_cut() -> None:
    pieces = list(windows(0, 3 * DAY, 2 * DAY, lambda first, end: 1e9))
    assert pieces == [(0, 2 * DAY), (2 * DAY, 3 * DAY)]
    minutes = list(windows(0, 3 * MINUTE, MINUTE, lambda first, end: 1e9))
    assert minutes == [(n * MINUTE, (n + 1) * MINUTE) for n in range(3)]
