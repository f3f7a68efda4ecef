"""The text of a page of bars, read in one go and by ccxt, in CPU time.

The rows are recorded ones, repeated to the length of a page. ccxt makes six columns of a row; ours
are those six, identical, and the turnover.
"""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.exchanges.ccxt.catalog import ccxt_class
from collector.exchanges.ccxt.unread import learn, picked, unread
from tests.bench.harness import Bench, Figure, in_turn, ratio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

AT_LEAST = 5
PAGE_ROWS = 1_000
PAGES = 10
RECORDINGS = Path(__file__).parents[1] / "recordings"


@dataclass(frozen=True, slots=True)
class Venue:
    """Where its recorded page lies, and where a row of it keeps the turnover."""

    recording: str
    turnover: int | None
    inverse: bool = False


VENUES = {
    "binance": Venue("klines.json", 7),
    "binanceusdm": Venue("klines.json", 7),
    "binancecoinm": Venue("klines.json", None, inverse=True),
    "bybit": Venue("kline.json", 6),
}


async def run(bench: Bench) -> list[Figure]:
    figures, rows = [], []
    for name, venue in VENUES.items():
        page = _page(RECORDINGS / name / venue.recording)
        exchange, market = ccxt_class(name)(), {"inverse": venue.inverse}
        text = json.dumps(page, separators=(",", ":"))
        ours = _ours(venue, exchange, text, page[0], market)
        ccxts = _ccxts(exchange, text, market)
        if [bar[:6] for bar in ours()] != [tuple(bar) for bar in ccxts()]:
            raise RuntimeError(f"{name}: not what ccxt makes of the page")
        samples = await in_turn(
            {"ours": _cpu(ours), "ccxt": _cpu(ccxts)},
            bench.pick(21, 11),
            settled=lambda so_far: ratio(so_far, "ccxt", "ours") >= AT_LEAST,
        )
        rows.append([name, *(1e6 * min(samples[each]) for each in ("ours", "ccxt"))])
        less = ratio(samples, "ccxt", "ours")
        figures.append(Figure(f"lake.decode, {name}: ccxt's CPU / ours", less, at_least=AT_LEAST))
    bench.show(f"a page of {PAGE_ROWS:,} rows, µs of CPU", ["", "ours", "ccxt"], rows)
    return figures


def _page(recording: Path) -> list[Any]:
    """Ascending, as ccxt would put it."""
    told = json.loads(recording.read_text("utf-8"))
    rows = told if isinstance(told, list) else told["result"]["list"]
    ascending = sorted(rows, key=lambda row: int(row[0]))
    page = list(itertools.islice(itertools.cycle(ascending), PAGE_ROWS))
    return sorted(page, key=lambda row: int(row[0]))


def _ours(
    venue: Venue, exchange: Any, text: str, row: Any, market: Any
) -> Callable[[], Sequence[Any]]:
    def parse(row: Any) -> list[Any]:
        extra = None if venue.turnover is None else exchange.safe_number(row, venue.turnover)
        return [*exchange.parse_ohlcv(row, market), extra]

    columns = learn(row, parse)
    if columns is None:
        raise RuntimeError(f"{venue.recording}: its columns could not be learnt")

    def read() -> Sequence[Any]:
        _, page = unread(text, (), exchange.parse_json)
        return () if page is None else picked(page, columns, parse) or ()

    return read


def _ccxts(exchange: Any, text: str, market: Any) -> Callable[[], list[Any]]:
    def parsed() -> list[Any]:
        bars: list[Any] = exchange.parse_ohlcvs(exchange.parse_json(text), market)
        return bars

    return parsed


def _cpu(read: Callable[[], Sequence[Any]]) -> Callable[[], Awaitable[float]]:
    async def seconds() -> float:
        started = time.thread_time()
        for _ in range(PAGES):
            read()
        return (time.thread_time() - started) / PAGES

    return seconds
