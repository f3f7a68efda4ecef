"""Only bars that have ended are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from collector.market.candles import CandleBatch
    from collector.market.timeframe import Timeframe


def closed(
    batch: CandleBatch, timeframe: Timeframe, server_ms: int, grace_ms: int = 0
) -> NDArray[np.bool_]:
    """Which bars had ended `grace_ms` before the venue's clock read `server_ms`.

    The venue's clock decides: ours may be ahead, and the last row of a page is not always the
    running one.
    """
    return timeframe.ends(batch.ts) <= server_ms - grace_ms


def closed_end_ms(timeframe: Timeframe, server_ms: int, grace_ms: int = 0) -> int:
    """The end of the last bar that `closed` lets through: every slot before it has ended."""
    return timeframe.floor(server_ms - grace_ms)
