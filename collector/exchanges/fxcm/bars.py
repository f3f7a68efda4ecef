"""History as FXCM gives it: columns of bid and ask bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.exchanges.fxcm.wire import BadLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

TIMEFRAMES = (
    *("m1", "m2", "m3", "m4", "m5", "m10", "m15", "m30"),
    *("H1", "H2", "H3", "H4", "H6", "H8", "H12"),
    *("D1", "D2", "W1", "M1"),
)
"""The SDK's own names. Its `t1`, single ticks, is not a bar."""

_PRICES = (
    *("BidOpen", "BidHigh", "BidLow", "BidClose"),
    *("AskOpen", "AskHigh", "AskLow", "AskClose"),
)


@dataclass(frozen=True, slots=True, eq=False)
class BidAskBars:
    """Columns of equal length, oldest first. The last bar may still be running."""

    time_ms: NDArray[np.int64]
    volume: NDArray[np.int64]
    bid_open: NDArray[np.float64]
    bid_high: NDArray[np.float64]
    bid_low: NDArray[np.float64]
    bid_close: NDArray[np.float64]
    ask_open: NDArray[np.float64]
    ask_high: NDArray[np.float64]
    ask_low: NDArray[np.float64]
    ask_close: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time_ms)

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> BidAskBars:
        """From what the sidecar answered."""
        try:
            times = np.asarray(columns["Date"], np.int64)
            volume = np.asarray(columns["Volume"], np.int64)
            prices = [np.asarray(columns[name], np.float64) for name in _PRICES]
        except (KeyError, TypeError, ValueError) as error:
            raise BadLine(f"fxcm: history that cannot be read: {error!r}") from error
        if {len(volume), *map(len, prices)} != {len(times)}:
            raise BadLine("fxcm: history whose columns differ in length")
        return cls(times, volume, *prices)
