"""Trades by the column: what bulk work is done on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.history import uint256
from collector.history.uint256 import from_ints, trimmed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from collector.history.event import CanonicalTrade
    from collector.history.pair import Pair
    from collector.history.uint256 import Wide

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TradeColumns:
    """Equally long columns, in the order of position or of (time, position).

    `code` is the index in `pairs` of a row's pair. Wide columns are trimmed.
    """

    pairs: tuple[Pair, ...]
    code: NDArray[Any]
    ts: Ints
    price: Wide
    base: Wide
    quote: Wide

    def __len__(self) -> int:
        return len(self.ts)

    @classmethod
    def of(cls, trades: Sequence[CanonicalTrade]) -> TradeColumns:
        codes: dict[Pair, int] = {}
        code = [codes.setdefault(trade.pair, len(codes)) for trade in trades]
        return cls(
            tuple(codes),
            np.array(code, dtype=np.uint16),
            np.array([trade.ts for trade in trades], dtype=np.int64),
            *(
                trimmed(from_ints([getattr(trade, name) for trade in trades]))
                for name in ("price", "base", "quote")
            ),
        )

    def take(self, rows: NDArray[Any]) -> TradeColumns:
        """The rows a mask or an index picks."""
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        wide = (uint256.reordered(each, rows) for each in (self.price, self.base, self.quote))
        return TradeColumns(self.pairs, self.code[rows], self.ts[rows], *wide)
