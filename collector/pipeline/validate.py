"""Which bars may be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.market.candles import CandleBatch
    from collector.market.interval import Interval
    from collector.market.timeframe import Timeframe

REASONS = (
    "",
    "not_finite",
    "ohlc",
    "negative_volume",
    "misaligned",
    "outside_window",
    "future",
)
"""What `judge` answers with. The first reason that holds is the one that is given."""


def judge(
    batch: CandleBatch, timeframe: Timeframe, asked: Interval, server_ms: int
) -> NDArray[np.int8]:
    """For each bar 0 when it is good, else the place of its reason in REASONS."""
    o, h, l, c, v, t = batch.o, batch.h, batch.l, batch.c, batch.v, batch.t  # noqa: E741
    finite = np.isfinite(o) & np.isfinite(h) & np.isfinite(l) & np.isfinite(c) & np.isfinite(v)
    failing = (
        ~finite | np.isinf(t),
        (l > np.minimum(o, c)) | (h < np.maximum(o, c)),
        (v < 0) | (t < 0),
        (batch.ts - timeframe.floor(0)) % timeframe.ms != 0,
        (batch.ts < asked.from_ms) | (batch.ts >= asked.to_ms),
        batch.ts > server_ms,
    )
    verdict = np.zeros(len(batch), dtype=np.int8)
    for code in range(len(failing), 0, -1):
        verdict[failing[code - 1]] = code
    return verdict
