"""Which bars are valid."""

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
    "price",
    "negative_volume",
    "misaligned",
    "outside_window",
    "future",
)
"""The results of `judge`. The first reason that applies is used."""


def judge(
    batch: CandleBatch,
    timeframe: Timeframe,
    asked: Interval,
    server_ms: int,
    *,
    below_zero: bool = False,
) -> NDArray[np.int8]:
    """For each bar 0 when it is good, else the place of its reason in REASONS.

    `below_zero`: the market may trade at zero or less. Elsewhere such a price is an error.
    """
    failing = (
        *_wrong_values(batch, below_zero),
        timeframe.floors(batch.ts) != batch.ts,
        (batch.ts < asked.from_ms) | (batch.ts >= asked.to_ms),
        batch.ts > server_ms,
    )
    verdict = np.zeros(len(batch), dtype=np.int8)
    for code in range(len(failing), 0, -1):
        verdict[failing[code - 1]] = code
    return verdict


def have_good_values(batch: CandleBatch, *, below_zero: bool = False) -> bool:
    """Whether nothing is wrong with any bar but perhaps its time."""
    return not any(each.any() for each in _wrong_values(batch, below_zero))


def _wrong_values(batch: CandleBatch, below_zero: bool) -> tuple[NDArray[np.bool_], ...]:
    """For each bar whether it fails, for the first four of REASONS."""
    o, h, l, c, v, t = batch.o, batch.h, batch.l, batch.c, batch.v, batch.t  # noqa: E741
    finite = np.isfinite(o) & np.isfinite(h) & np.isfinite(l) & np.isfinite(c) & np.isfinite(v)
    return (
        ~finite | np.isinf(t),
        (l > np.minimum(o, c)) | (h < np.maximum(o, c)),
        # The low is the least of the four, so what is left here has them in order.
        (l <= 0) & (not below_zero),
        (v < 0) | (t < 0),
    )
