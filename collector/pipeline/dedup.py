"""One bar a time: within a page, the last one sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collector.market.candles import CandleBatch


def dedup(batch: CandleBatch) -> CandleBatch:
    """The last bar of each time. `batch` is ascending, and equal times stand in page order."""
    if len(batch) < 2:
        return batch
    last = np.append(batch.ts[1:] != batch.ts[:-1], True)
    return batch if last.all() else batch.take(last)
