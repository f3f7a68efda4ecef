"""Long ranges in pieces."""

from __future__ import annotations

from collector.history.windows import MOST_ROWS, windows

MINUTE, DAY = 60_000, 86_400_000


def test_a_range_is_halved_until_its_pieces_fit() -> None:
    whole = 2 * DAY + MINUTE
    assert list(windows(0, whole, MINUTE, lambda first, end: 1.0)) == [(0, whole)]
    busy = list(windows(0, DAY, MINUTE, lambda first, end: 4 * MOST_ROWS * (end - first) / DAY))
    assert busy == [(n * DAY // 4, (n + 1) * DAY // 4) for n in range(4)]


def test_pieces_without_rows_are_left_out() -> None:
    def rows(first: int, end: int) -> float:
        """Many of them, all in the third of four days."""
        return 2.0 * MOST_ROWS * max(0, min(end, 3 * DAY) - max(first, 2 * DAY)) / DAY

    found = list(windows(0, 4 * DAY, MINUTE, rows))
    assert found == [(2 * DAY, 2 * DAY + DAY // 2), (2 * DAY + DAY // 2, 3 * DAY)]
    assert not list(windows(DAY, DAY, MINUTE, rows))
    assert not list(windows(DAY, 0, MINUTE, lambda first, end: 9.0))


def test_a_bucket_is_never_cut() -> None:
    pieces = list(windows(0, 4 * DAY, 2 * DAY, lambda first, end: 1e9))
    assert pieces == [(0, 2 * DAY), (2 * DAY, 4 * DAY)]
    minutes = list(windows(0, 3 * MINUTE, MINUTE, lambda first, end: 1e9))
    assert minutes == [(n * MINUTE, (n + 1) * MINUTE) for n in range(3)]
