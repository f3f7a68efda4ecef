"""Exact candles as floats, in the columns that every other candle has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.history.uint256 import SCALE
from collector.market.candles import NO_TRADE, CandleBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from collector.history.candle import Candle


def candle_frame(found: Sequence[Candle], network: str) -> pa.Table:
    """A table of CANDLE_SCHEMA. Amounts are divided by 10^18, as prices are."""
    columns = np.empty((len(found), 7))
    columns[:, 0] = [each.ts for each in found]
    names = ("open", "high", "low", "close", "sum_base", "sum_quote")
    for column, name in enumerate(names, start=1):
        columns[:, column] = [getattr(each, name) / SCALE for each in found]
    batch = CandleBatch.of_columns(columns)
    batch.gap[np.array([each.filled for each in found], dtype=bool)] = NO_TRADE
    return batch.to_arrow(network)
