"""When a venue says to come back."""

from __future__ import annotations

import pytest

from collector.clock import ManualClock
from collector.exchanges.ccxt.errors import http_date_ms, retry_after_ms
from collector.exchanges.ccxt.visit import Reply

CLOCK = ManualClock(1_700_000_000_000)  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "120"}, 120_000),
        ({"retry-after": " 1.5 "}, 1_500),
        ({"retry-after": "Tue, 14 Nov 2023 22:14:20 GMT"}, 60_000),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0),
        (
            {
                "retry-after": "Wed, 21 Oct 2015 07:28:10 GMT",
                "date": "Wed, 21 Oct 2015 07:28:00 GMT",
            },
            10_000,
        ),
    ],
)
def test_retry_after(headers: dict[str, str], expected: int | None) -> None:
    assert retry_after_ms(Reply(429, headers), CLOCK) == expected


def test_http_dates() -> None:
    assert http_date_ms("Tue, 14 Nov 2023 22:13:20 GMT") == 1_700_000_000_000
    assert http_date_ms("Tue, 14 Nov 2023 22:13:20 -0000") == 1_700_000_000_000
    assert http_date_ms("yesterday") is None
    assert http_date_ms(f"Tue, 14 Nov {'9' * 20} 22:13:20 GMT") is None
    assert http_date_ms(f"Tue, 14 Nov 2023 22:13:20 +{'9' * 17}") is None
    assert http_date_ms("") is None
