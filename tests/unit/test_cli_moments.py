"""Moments as people type them."""

from __future__ import annotations

import pytest

from collector.cli.moments import shown_age, shown_moment
from collector.durations import shown_span
from collector.errors import InvalidInput
from collector.operations.moments import moment_ms

NOW = 1_735_732_800_000
"""2025-01-01 12:00 UTC."""
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-01-01", NOW - 12 * HOUR),
        ("2025-01-01T12:00", NOW),
        ("2025-01-01T12:00Z", NOW),
        ("2025-01-01 14:00+02:00", NOW),
        ("20250101", NOW - 12 * HOUR),
        (str(NOW), NOW),
        (str(NOW // 1000), NOW),
        ("3h", NOW - 3 * HOUR),
        ("2w", NOW - 14 * 24 * HOUR),
    ],
)
def test_a_moment_is_a_date_epoch_ms_or_a_span_ago(text: str, expected: int) -> None:
    assert moment_ms(text, NOW) == expected


def test_a_span_may_point_ahead() -> None:
    assert moment_ms("30m", NOW, "ahead") == NOW + HOUR // 2


@pytest.mark.parametrize(
    "text", ["", "yesterday", "20251301", "2025", "-5d", "5y", "2025-13-01", "9" * 30, "999999w"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        moment_ms(text, NOW)


def test_moments_are_shown_in_utc_and_ages_in_words() -> None:
    assert shown_moment(NOW) == "2025-01-01 12:00:00"
    assert shown_moment(NOW, seconds=False) == "2025-01-01 12:00"
    assert shown_moment(None) == shown_moment(0) == shown_age(None, NOW) == "-"
    assert shown_age(NOW, NOW) == "now"
    assert shown_age(NOW - 90_000, NOW) == "1 min ago"
    assert shown_age(NOW + 49 * HOUR, NOW) == "in 2 d"
    assert [shown_span(ms) for ms in (59_999, HOUR, 25 * HOUR)] == ["59 s", "1 h", "1 d"]
