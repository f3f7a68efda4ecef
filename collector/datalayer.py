"""Seed 003's public functions: the verbs of `datalayer` for programs and notebooks.

`exchange` is `api.adapter` of the settings unless it is said. Symbols are written `BTCUSDT` or
`BTC/USDT`, and `["ALL"]` means everything that is stored. Errors are those of `collector.errors`.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from collector import reader
from collector.cli.actions import lake
from collector.cli.actions.backfill import backfill as _backfill
from collector.cli.actions.tickers import stored_symbols
from collector.cli.verb import Asked
from collector.store.store import Store

if TYPE_CHECKING:
    import os
    from collections.abc import Coroutine, Sequence
    from pathlib import Path

    import pandas as pd

    from collector.reports.validation_report import ValidationReport
    from collector.store.port import Storage

__all__ = ["DataReader", "backfill", "missing_report", "resample", "validate"]

T = TypeVar("T")


class DataReader(reader.DataReader):
    """The candles of one symbol and timeframe: `DataReader("BTCUSDT", "1m").read(start, end)`.

    Exchange and data directory come from the settings unless they are given.
    """

    def __init__(
        self,
        symbol: str,
        tf: str,
        exchange: str | None = None,
        root: str | os.PathLike[str] | Storage | Store | None = None,
    ) -> None:
        settings = Asked().settings()
        exchange_id = exchange or settings.api.adapter
        where = settings.data_root if root is None else root
        if "/" not in symbol:
            store = where if isinstance(where, Store) else Store(where)
            stored = {each.symbol for each in store.series(exchange_id)}
            [symbol] = stored_symbols([symbol], exchange_id, stored)
        super().__init__(symbol, tf, exchange_id, where)


def backfill(
    symbols: Sequence[str],
    since: str | None = None,
    *,
    exchange: str | None = None,
    config: Path | None = None,
) -> None:
    """Loads the 1m history of the symbols up to now; returns when it is there.

    Starts a worker for as long as it takes when none is running. Repeat it at will.
    """
    _wait(_backfill(Asked(config=config), symbols, since, exchange))


def resample(
    symbols: Sequence[str],
    tfs: Sequence[str] = ("5m", "15m", "1h"),
    *,
    exchange: str | None = None,
    config: Path | None = None,
) -> None:
    """Writes longer bars made of the stored minutes."""
    lake.resampled(Asked(config=config), symbols, tfs, exchange)


def validate(
    symbols: Sequence[str],
    tfs: Sequence[str],
    *,
    exchange: str | None = None,
    samples: int | None = None,
    config: Path | None = None,
) -> ValidationReport:
    """Checks the series. `samples` bars of each are compared with the exchange; 0 asks nobody."""
    return _wait(lake.validated(Asked(config=config), symbols, tfs, exchange, samples))


def missing_report(
    symbols: Sequence[str],
    tfs: Sequence[str],
    *,
    exchange: str | None = None,
    config: Path | None = None,
) -> pd.DataFrame:
    """One row a series, as missing.csv has them; `frame.attrs["summary"]` is the summary."""
    report = lake.missing(Asked(config=config), symbols, tfs, exchange)
    frame: pd.DataFrame = report.table().to_pandas()
    frame.attrs["summary"] = report.summary()
    return frame


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end, also inside a notebook, whose loop is busy with the cell."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
