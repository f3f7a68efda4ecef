"""The public functions of the datalayer specification: the verbs of `datalayer` for programs and
notebooks.

`exchange` is `api.adapter` of the settings unless it is given. Symbols are written `BTCUSDT` or
`BTC/USDT`, and `["ALL"]` means everything that is stored. Errors are those of `collector.errors`.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from collector import logs, reader
from collector.operations import lake
from collector.operations.backfill import backfill as _backfill
from collector.operations.deployment import Deployment
from collector.operations.tickers import stored_symbols
from collector.progress import late_progress, progress_of_jobs
from collector.reader.place import store_at
from collector.settings import load
from collector.store.trades import trade_symbols

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path

    import pandas as pd

    from collector.market.moment import Moment
    from collector.reader.place import Root
    from collector.reports.validation_report import ValidationReport

__all__ = ["DataReader", "TradeReader", "backfill", "missing_report", "resample", "validate"]

T = TypeVar("T")


class DataReader(reader.CandleReader):
    """The candles of one symbol and timeframe: `DataReader("BTCUSDT", "1m").read(start, end)`.

    Exchange and data directory come from the settings unless they are given.
    """

    def __init__(
        self,
        symbol: str,
        tf: str,
        exchange: str | None = None,
        root: Root | None = None,
    ) -> None:
        exchange_id, where = _place(exchange, root)
        if "/" not in symbol:
            stored = {each.symbol for each in store_at(where).series(exchange_id)}
            [symbol] = stored_symbols([symbol], exchange_id, stored)
        super().__init__(symbol, tf, exchange_id, where)


class TradeReader(reader.StoredTrades):
    """The trades of one symbol: `TradeReader("BTCUSDT").read(start, end)`.

    Exchange and data directory come from the settings unless they are given.
    """

    def __init__(self, symbol: str, exchange: str | None = None, root: Root | None = None) -> None:
        exchange_id, where = _place(exchange, root)
        if "/" not in symbol:
            stored = set(trade_symbols(store_at(where).storage, exchange_id))
            [symbol] = stored_symbols([symbol], exchange_id, stored)
        super().__init__(symbol, exchange_id, where)


def backfill(
    symbols: Sequence[str],
    since: Moment | None = None,
    *,
    exchange: str | None = None,
    config: Path | None = None,
) -> None:
    """Loads the 1m history of the symbols up to now; returns when it is stored.

    Starts a worker for as long as it takes when none is running. Safe to repeat. Does not wait for
    unconfirmed slots, which the exchange reported as empty and which jobs ask about again later:
    `missing_report` counts them.
    """
    _wait(_backfill(_where(config), symbols, since, exchange, progress_of_jobs))


def resample(
    symbols: Sequence[str],
    tfs: Sequence[str] = ("5m", "15m", "1h"),
    *,
    exchange: str | None = None,
    config: Path | None = None,
) -> None:
    """Writes longer bars made of the stored minutes."""
    lake.resampled(_where(config), symbols, tfs, exchange)


def validate(
    symbols: Sequence[str],
    tfs: Sequence[str],
    *,
    exchange: str | None = None,
    samples: int | None = None,
    config: Path | None = None,
) -> ValidationReport:
    """Checks the series; compares `samples` bars of each with the exchange, none for 0."""
    where = _where(config)
    report, _ = _wait(lake.validated(where, symbols, tfs, exchange, samples, late_progress))
    return report


def missing_report(
    symbols: Sequence[str],
    tfs: Sequence[str],
    *,
    exchange: str | None = None,
    config: Path | None = None,
) -> pd.DataFrame:
    """One row a series, as missing.csv has them; `frame.attrs["summary"]` is the summary."""
    report, _ = _wait(lake.missing(_where(config), symbols, tfs, exchange, late_progress))
    frame: pd.DataFrame = report.table().to_pandas()
    frame.attrs["summary"] = report.summary()
    return frame


def _place(exchange: str | None, root: Root | None) -> tuple[str, Root]:
    settings = load()
    return exchange or settings.api.adapter, settings.data_root if root is None else root


def _where(config: Path | None) -> Deployment:
    """The settings; logs go to standard error, and only what is wrong."""
    where = Deployment.read(config)
    logs.configure("WARNING", where.settings.logging.format)
    return where


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end, also inside a notebook, whose loop is busy with the cell."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
