"""`BTCUSDT` in REST, wherever a symbol is given: the same answer as for BTC/USDT."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from collector.exchanges.port import Ticker
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.market.answer import Rejected
from collector.market.trade import Trade
from collector.markets.tickers import TickerBoard
from collector.store.store import Store
from collector.store.trades import append_trades
from tests.support.bars import BTC, T0, bars, span
from tests.support.local_api import Client, know_markets, serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

SYMBOLS = {"BTC/USDT", "BTCUSDT", "btc-usdt"}
OF_FILES = (
    "candles?timeframe=1m",
    "trades?limit=5",
    "series?limit=5",
    "coverage?timeframe=1m",
    "coverage/days?start=1704067200000&end=1704153600000",
    "reports/gaps?limit=5",
    "quarantine?limit=5",
)
OF_THE_DATABASE = ("tickers?limit=5", "live?limit=5", "jobs?limit=5")


def stage(root: Path) -> None:
    store = Store(root)
    store.append_page(BTC, bars({n: 100.0 + n for n in range(5)}), span(0, 5), fence=1, known_at=1)
    store.append_page(BTC, bars({9: 100.0}), span(9, 10), fence=1, known_at=1)
    trades = [Trade("1", T0, 100.5, 0.25, "buy")]
    append_trades(store.storage, "binance", "BTC/USDT", trades, known_at=1)
    store.quarantine(BTC, [Rejected("ohlc", T0, (T0, 2.0, 1.0))], fence=1, known_at=1)


async def answers(client: Client, path: str) -> list[Any]:
    """One for each spelling, all within a minute: what a series lacks grows by the minute."""
    while True:
        minute = int(time.time() // 60)
        found = []
        for symbol in SYMBOLS:
            answer = await client.get(f"/api/v1/{path}&symbol={symbol}")
            assert answer.status == 200, (path, symbol, answer.body)
            answer.body.pop("generated_at", None)
            found.append(answer.body)
        if int(time.time() // 60) == minute:
            return found


@pytest.mark.parametrize("exchange", ["&exchange_id=binance", ""])
async def test_short_symbols(database: Database, tmp_path: Path, exchange: str) -> None:
    stage(tmp_path)
    await know_markets(database, "binance")
    await TickerBoard(database).save("binance", [Ticker("BTC/USDT", 1.0, None, 1.0, 1.0, ts=5)])
    await JobQueue(database).add(JobSpec("binance", "trades_incremental", "BTC/USDT"))
    await JobQueue(database).add(JobSpec("kraken", "trades_incremental", "BTC/USDT:USDT"))
    paths = [*OF_FILES, *OF_THE_DATABASE] if exchange else OF_FILES[2:]
    async with serving(database, tmp_path) as client:
        for path in paths:
            found = await answers(client, f"{path}{exchange}")
            assert found[0] == found[1] == found[2], path
            if not path.startswith("live"):
                assert found[0].get("items") or found[0].get("rows"), path
