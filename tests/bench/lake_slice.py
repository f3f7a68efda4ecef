"""One day out of ten years: our reader, polars and DuckDB on the very same sealed file.

Ours also looks for parts that came since and checks every page's checksum; the others do neither.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars

from collector.market.candles import CANDLE_SCHEMA
from collector.reader import CandleReader
from collector.store import layout
from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.bench.lake_bars import DAY_MS, SERIES, START_MS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Read = Callable[[int, int], Any]

AT_MOST = 1.5
_COLUMNS = ", ".join(CANDLE_SCHEMA.names)


async def run(bench: Bench, root: Path, days: int) -> list[Figure]:
    file = str(root / layout.sealed_path(SERIES))
    reader = CandleReader(SERIES.symbol, SERIES.timeframe.name, SERIES.exchange_id, root)
    connection = duckdb.connect()
    query = f"SELECT {_COLUMNS} FROM read_parquet($1) WHERE ts >= $2 AND ts < $3"

    def by_polars(start: int, end: int) -> Any:
        inside = (polars.col("ts") >= start) & (polars.col("ts") < end)
        return polars.scan_parquet(file).filter(inside).select(CANDLE_SCHEMA.names).collect()

    def by_duckdb(start: int, end: int) -> Any:
        return connection.sql(query, params=[file, start, end])

    reads: dict[str, Read] = {
        "ours": reader.arrow,
        "ours, to pandas": reader.read,
        "polars": by_polars,
        "polars, to pandas": lambda start, end: by_polars(start, end).to_pandas(),
        "DuckDB": lambda start, end: by_duckdb(start, end).to_arrow_table(),
        "DuckDB, to pandas": lambda start, end: by_duckdb(start, end).df(),
    }
    _same(reads, days)
    picked = np.random.default_rng(1).integers(0, days, 20)
    samples = await in_turn(
        {name: _timed(read, picked) for name, read in reads.items()},
        bench.pick(9, 5),
        settled=lambda so_far: max(_ratios(so_far)) <= AT_MOST,
    )
    bench.show(
        f"one day of {days:,}",
        ["", "ms"],
        [[name, 1000 * min(samples[name])] for name in reads],
    )
    against_polars, against_duckdb = _ratios(samples)
    return [
        Figure("lake.slice, our time / polars'", against_polars, at_most=AT_MOST),
        Figure("lake.slice, our time / DuckDB's", against_duckdb, at_most=AT_MOST),
        *(
            Figure(
                f"lake.slice to pandas, our time / {other}'s",
                ratio(samples, "ours, to pandas", f"{other}, to pandas"),
            )
            for other in ("polars", "DuckDB")
        ),
    ]


def _ratios(samples: dict[str, list[float]]) -> tuple[float, float]:
    return ratio(samples, "ours", "polars"), ratio(samples, "ours", "DuckDB")


def _timed(read: Read, picked: np.ndarray) -> Callable[[], Awaitable[float]]:
    async def seconds() -> float:
        started = time.perf_counter()
        for day in picked.tolist():
            read(START_MS + day * DAY_MS, START_MS + (day + 1) * DAY_MS)
        return (time.perf_counter() - started) / len(picked)

    return seconds


def _same(reads: dict[str, Read], days: int) -> None:
    """Whoever is fastest has to have read the day."""
    start = START_MS + days // 2 * DAY_MS
    for name, read in reads.items():
        table = read(start, start + DAY_MS)
        if len(table) != 1440 or int(min(table["ts"].to_numpy())) != start:
            raise RuntimeError(f"{name} did not read the day")
