"""Other tools read the lake's files as they lie there, and find what our own reader finds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from collector.market.candles import CANDLE_SCHEMA
from collector.reader import CandleReader
from collector.store import layout
from collector.store.copies import DEFAULT_TIMEFRAMES, Copies
from collector.store.segment import ROWS_PER_GROUP
from collector.store.store import Store
from tests.support.bars import BTC, at, bars, span

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DAY = 1440
DAYS = 16
"""More than a row group of minutes, and more than the tail."""
TAIL_DAYS = 14
NAMES = CANDLE_SCHEMA.names


def by_duckdb(file: Path) -> pa.Table:
    columns = ", ".join(NAMES)
    with duckdb.connect() as connection:
        query = f"SELECT {columns} FROM read_parquet($1)"
        return connection.sql(query, params=[str(file)]).to_arrow_table().cast(CANDLE_SCHEMA)


def by_polars(file: Path) -> pa.Table:
    return polars.read_parquet(file, columns=NAMES).to_arrow().cast(CANDLE_SCHEMA)


def by_pandas(file: Path) -> pa.Table:
    frame = pd.read_parquet(file, columns=NAMES)
    return pa.Table.from_pandas(frame, schema=CANDLE_SCHEMA, preserve_index=False)


TOOLS = {"duckdb": by_duckdb, "polars": by_polars, "pandas": by_pandas}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute without trade every hour, an hour nobody asked for every day, no turnover at noon.

    One bar was told twice, differently.
    """
    root = tmp_path_factory.mktemp("lake")
    store = Store(root, copies=Copies(DEFAULT_TIMEFRAMES, TAIL_DAYS))
    for day in range(DAYS):
        first, end = day * DAY, day * DAY + DAY - 60
        slots = [slot for slot in range(first, end) if slot % 60 != 30]
        batch = bars({slot: 100.0 + slot % 977 / 100 for slot in slots})
        noon = (batch.ts >= at(first + 720)) & (batch.ts < at(first + 780))
        batch = replace(batch, t=np.where(noon, np.nan, batch.t))
        store.append_page(BTC, batch, span(first, end), fence=1, known_at=day)
    store.append_page(BTC, bars({7: 500.0}), span(7, 8), fence=1, known_at=99)
    store.compact(BTC)
    return root


def ours(root: Path, timeframe: str, start: int | None = None) -> pa.Table:
    table = CandleReader(BTC.symbol, timeframe, BTC.exchange_id, root).arrow(start)
    return table.combine_chunks()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("timeframe", ["1m", "5m", "1h"])
def test_a_sealed_file_says_what_the_reader_says(lake: Path, tool: str, timeframe: str) -> None:
    read: Callable[[Path], pa.Table] = TOOLS[tool]
    file = (lake / layout.sealed_path(BTC)).with_name(f"{timeframe}.parquet")
    assert read(file).combine_chunks().equals(ours(lake, timeframe))


@pytest.mark.parametrize("tool", TOOLS)
def test_the_tail_says_what_the_reader_says(lake: Path, tool: str) -> None:
    read: Callable[[Path], pa.Table] = TOOLS[tool]
    told = read(lake / layout.tail_path(BTC)).combine_chunks()
    end = DAYS * DAY - 60
    assert len(told) == TAIL_DAYS * DAY
    assert told.equals(ours(lake, "1m", at(end - TAIL_DAYS * DAY)))


def test_there_is_something_to_agree_on(lake: Path) -> None:
    minutes = ours(lake, "1m")
    assert len(minutes) > ROWS_PER_GROUP
    assert set(minutes["gap_reason"].to_pylist()) == {None, "no_trade", "missing"}
    assert 0 < minutes["t"].null_count < len(minutes)
    assert set(minutes["ver"].to_pylist()) == {1, 2}
    assert sum(ours(lake, "1h")["is_gap"].to_pylist()) > 0


def test_many_symbols_in_one_query_keep_their_names(lake: Path) -> None:
    """The queries of docs/store-format.md."""
    files = f"{lake}/binance/*/1m.parquet"
    with duckdb.connect() as connection:
        query = f"""
            SELECT split_part(filename, '/', -2) AS symbol, * EXCLUDE (filename)
            FROM read_parquet('{files}', filename = true)
        """
        found = connection.sql(query).to_arrow_table()
    scanned = (
        polars.scan_parquet(files, include_file_paths="path")
        .with_columns(symbol=polars.col("path").str.split("/").list.get(-2))
        .drop("path")
        .collect()
    )
    for table in (found, scanned.to_arrow()):
        assert set(table["symbol"].to_pylist()) == {"BTC-USDT"}
        assert len(table) == len(ours(lake, "1m"))
