"""On which day of the week a venue's weekly bars open.

Most venues begin a week on Monday. Some count whole weeks from 1970-01-01, which was a Thursday.
It is part of the vocabulary, because stored bars have to be read the way they were aligned.
"""

from __future__ import annotations

from collector.durations import DAY_MS

_MONDAY_MS = 4 * DAY_MS  # 1970-01-05
_THURSDAY_MS = 0

THURSDAY_WEEKS = frozenset({"hyperliquid", "kucoin", "kucoinfutures"})
"""Exchanges whose weeks open on Thursday."""


def week_origin_ms(exchange_id: str = "") -> int:
    """A moment at which a week opens, at an exchange or, without one, in general."""
    return _THURSDAY_MS if exchange_id in THURSDAY_WEEKS else _MONDAY_MS
