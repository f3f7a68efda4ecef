"""Readers: a range of time in, what is stored of it out."""

from __future__ import annotations

from collector.market.moment import epoch_ms
from collector.reader.candles import CandleReader, not_stored
from collector.reader.place import default_root
from collector.reader.trades import StoredTrades

__all__ = ["CandleReader", "StoredTrades", "default_root", "epoch_ms", "not_stored"]
