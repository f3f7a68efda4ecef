"""A year of minutes to 5m, 15m and 1h together, against pandas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from collector.pipeline.ladder import Graded, Ladder
from collector.store.copies import DEFAULT_TIMEFRAMES, MINUTE
from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.bench.lake_bars import YEAR_DAYS, minutes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REQUIRED, WANTED = 8, 15
_RULES = {"5m": "5min", "15m": "15min", "1h": "1h"}
_HOW = {"o": "first", "h": "max", "l": "min", "c": "last", "v": "sum", "t": "sum"}


async def run(bench: Bench) -> list[Figure]:
    batch = minutes(bench.pick(YEAR_DAYS, 90))
    columns = {name: getattr(batch, name) for name in _HOW}
    frame = pd.DataFrame(columns, index=pd.to_datetime(batch.ts, unit="ms"))
    graded = Graded(batch, np.ones(len(batch), dtype=np.int32))

    def ours() -> dict[str, Graded]:
        made = Ladder(MINUTE, DEFAULT_TIMEFRAMES).climb(graded)
        return {timeframe.name: bars for timeframe, bars in made.items()}

    def pandas() -> dict[str, pd.DataFrame]:
        return {name: frame.resample(rule).agg(_HOW) for name, rule in _RULES.items()}

    _same(ours(), pandas())
    samples = await in_turn(
        {"ours": _timed(ours, 10), "pandas": _timed(pandas, 1)}, bench.pick(11, 5)
    )
    faster = ratio(samples, "pandas", "ours")
    bench.show(
        f"{len(batch):,} minutes to 5m, 15m and 1h",
        ["", "ms", "pandas / this"],
        [
            [name, 1000 * min(samples[name]), ratio(samples, "pandas", name)]
            for name in ("ours", "pandas")
        ],
    )
    for bound in (REQUIRED, WANTED):
        reached = "reached" if faster >= bound else "NOT reached"
        bench.console.print(f"{bound}x the speed of pandas: {reached}")
    return [Figure("lake.resample, pandas' time / ours", faster, at_least=REQUIRED)]


def _timed(work: Callable[[], Any], times: int) -> Callable[[], Awaitable[float]]:
    async def seconds() -> float:
        started = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - started) / times

    return seconds


def _same(ours: dict[str, Graded], pandas: dict[str, pd.DataFrame]) -> None:
    for name, frame in pandas.items():
        for column in _HOW:
            made = getattr(ours[name].batch, column)
            if not np.allclose(made, frame[column].to_numpy(), rtol=1e-12):
                raise RuntimeError(f"{name} {column} is not what pandas makes of it")
