"""A range of time in, trades out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from collector.errors import NotStored
from collector.market.moment import epoch_ms
from collector.market.near import did_you_mean, near
from collector.market.symbol import checked_exchange_id, symbol_to_name
from collector.reader.place import store_at
from collector.store.catalogue import stored_exchanges
from collector.store.trade_rows import TRADE_SCHEMA
from collector.store.trades import trade_batches, trade_days, trade_symbols

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from collector.market.moment import Moment
    from collector.reader.place import Root
    from collector.store.port import Storage
    from collector.store.trades import Damaged


class StoredTrades:
    """The trades of one symbol, as far as they are stored: each once, in the order of time.

    Ranges are `[start, end)` in UTC; either end may be left out. Moments are written as for
    DataReader. A day is read as it was when the read came to it, parts that are not merged yet
    included. `damaged="skip"` leaves out what cannot be read of a damaged day and logs it; else
    Corrupt is raised.

    Raises NotStored, with similar names, when no trades are stored by that name. A range without
    trades is an empty frame.
    """

    def __init__(self, symbol: str, exchange: str, root: Root | None = None) -> None:
        symbol_to_name(symbol)
        self.symbol = symbol
        self.exchange_id = checked_exchange_id(exchange)
        self._storage = store_at(root).storage

    def read(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        damaged: Damaged = "raise",
    ) -> pd.DataFrame:
        """The range as a pandas frame with the columns of TRADE_SCHEMA."""
        frame: pd.DataFrame = self.arrow(start, end, damaged=damaged).to_pandas()
        return frame

    def arrow(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        damaged: Damaged = "raise",
    ) -> pa.Table:
        """The range as one Arrow table with TRADE_SCHEMA."""
        return pa.Table.from_batches(self.batches(start, end, damaged=damaged), TRADE_SCHEMA)

    def polars(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        damaged: Damaged = "raise",
    ) -> Any:
        """The range as a polars frame; needs the `polars` package."""
        import polars

        return polars.from_arrow(self.arrow(start, end, damaged=damaged))

    def batches(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        damaged: Damaged = "raise",
    ) -> Iterator[pa.RecordBatch]:
        """The range in ascending batches of some megabytes, whatever its length."""
        if damaged not in ("raise", "skip"):
            raise ValueError(f"damaged is 'raise' or 'skip', not {damaged!r}")
        from_ms, to_ms = (None if each is None else epoch_ms(each) for each in (start, end))
        market = (self._storage, self.exchange_id, self.symbol)
        if not trade_days(*market):
            raise no_trades(*market)
        for batch in trade_batches(*market, from_ms, to_ms, damaged=damaged):
            if len(batch):
                yield batch


def no_trades(storage: Storage, exchange_id: str, symbol: str) -> NotStored:
    """The error for a market without stored trades, with the markets that have some."""
    message = f"no trades are stored for {exchange_id} {symbol!r}"
    exchanges = [each for each in stored_exchanges(storage) if _has_trades(storage, each)]
    if exchanges and exchange_id not in exchanges:
        return NotStored(
            f"{message}{did_you_mean(exchange_id, exchanges)}", near(exchange_id, exchanges)
        )
    symbols = trade_symbols(storage, exchange_id)
    return NotStored(f"{message}{did_you_mean(symbol, symbols)}", near(symbol, symbols))


def _has_trades(storage: Storage, folder: str) -> bool:
    try:
        return bool(trade_symbols(storage, folder))
    except ValueError:
        return False  # Not ours, whatever it is doing there.
