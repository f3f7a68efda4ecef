"""A page of bars as a venue sent it, decoded by columns and by ccxt, in CPU time.

The rows are recorded ones, repeated to the length of a page. ccxt makes six columns of a row; ours
are those six, identical, and the turnover.
"""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.exchanges.ccxt_catalog import ccxt_class
from collector.exchanges.ccxt_columns import decode, learn
from collector.exchanges.quirks import quirks_for
from tests.bench.harness import Bench, Figure, in_turn, ratio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AT_LEAST = 5
PAGE_ROWS = 1_000
PAGES = 10
RECORDINGS = Path(__file__).parents[1] / "recordings"
LINEAR: dict[str, Any] = {"inverse": False}
INVERSE: dict[str, Any] = {"inverse": True}
VENUES = {
    "binance": ("klines.json", LINEAR),
    "binanceusdm": ("klines.json", LINEAR),
    "binancecoinm": ("klines.json", INVERSE),
    "bybit": ("kline.json", LINEAR),
}


async def run(bench: Bench) -> list[Figure]:
    figures, rows = [], []
    for venue, (name, market) in VENUES.items():
        page = _page(RECORDINGS / venue / name)
        exchange = ccxt_class(venue)()
        ours, ccxts = _ours(venue, exchange, page, market), _ccxts(exchange, page, market)
        if [bar[:6] for bar in ours()] != [tuple(bar) for bar in ccxts()]:
            raise RuntimeError(f"{venue}: not what ccxt makes of the page")
        samples = await in_turn(
            {"ours": _cpu(ours), "ccxt": _cpu(ccxts)},
            bench.pick(11, 5),
            settled=lambda so_far: ratio(so_far, "ccxt", "ours") >= AT_LEAST,
        )
        rows.append([venue, *(1e6 * min(samples[each]) for each in ("ours", "ccxt"))])
        less = ratio(samples, "ccxt", "ours")
        figures.append(Figure(f"lake.decode, {venue}: ccxt's CPU / ours", less, at_least=AT_LEAST))
    bench.show(f"a page of {PAGE_ROWS:,} rows, µs of CPU", ["", "ours", "ccxt"], rows)
    return figures


def _page(recording: Path) -> list[Any]:
    """Ascending, as ccxt would put it."""
    told = json.loads(recording.read_text("utf-8"))
    rows = told if isinstance(told, list) else told["result"]["list"]
    ascending = sorted(rows, key=lambda row: int(row[0]))
    page = list(itertools.islice(itertools.cycle(ascending), PAGE_ROWS))
    return sorted(page, key=lambda row: int(row[0]))


def _ours(venue: str, exchange: Any, page: list[Any], market: Any) -> Callable[[], list[Any]]:
    quirks = quirks_for(venue)
    turnover = quirks.inverse_turnover_index if market["inverse"] else quirks.turnover_index

    def parse(row: Any) -> list[Any]:
        return [*exchange.parse_ohlcv(row, market), exchange.safe_number(row, turnover)]

    columns = learn(page[0], parse)
    if columns is None:
        raise RuntimeError(f"{venue}: its columns could not be learnt")

    def decoded() -> list[Any]:
        return decode(page, columns, parse) or []

    return decoded


def _ccxts(exchange: Any, page: list[Any], market: Any) -> Callable[[], list[Any]]:
    def parsed() -> list[Any]:
        bars: list[Any] = exchange.parse_ohlcvs(page, market)
        return bars

    return parsed


def _cpu(decoded: Callable[[], list[Any]]) -> Callable[[], Awaitable[float]]:
    async def seconds() -> float:
        started = time.thread_time()
        for _ in range(PAGES):
            decoded()
        return (time.thread_time() - started) / PAGES

    return seconds
