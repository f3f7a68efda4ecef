"""Trades of an exchange as trade history: from the venue's digits to exact candles."""

from __future__ import annotations

from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any

from collector.history.reader import HistoryReader
from collector.history.terms import HistoryTerms
from collector.jobs.states import State
from collector.store.trades import read_trades
from tests.support.local_collector import MINUTE, SYMBOL, Cursor, collecting
from tests.support.until import until
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

NET = "simulated"
CONFIG = WorkerConfig("ann", poll_seconds=0.2, networks=(NET,))
SCALE = 10**18


def exact(number: float) -> int:
    """The simulated exchange writes at most eight decimals, which a float gives back."""
    return int(Decimal(repr(number)) * SCALE)


def candles_of(told: list[Any]) -> list[tuple[int, ...]]:
    """By minute: the last price, and base and quote to the last digit."""
    made = []
    for minute, group in groupby(told, lambda each: each["ts"] // MINUTE * MINUTE):
        rows = list(group)
        base = sum(exact(row["amount"]) for row in rows)
        quote = sum(exact(row["amount"]) * exact(row["price"]) // SCALE for row in rows)
        made.append((minute, exact(rows[-1]["price"]), base, quote, len(rows)))
    return made


async def test_collected_trades_become_candles_to_the_last_digit(
    database: Database, tmp_path: Path
) -> None:
    terms = HistoryTerms((NET,))
    async with collecting(database, tmp_path, config=CONFIG, history=terms) as c:
        now = c.exchange.now_ms()
        since = now - now % MINUTE - 20 * MINUTE
        job = await c.job(
            "trades_incremental",
            timeframe=None,
            cursor=Cursor(since_ms=since),
            params={"history": NET},
        )
        done = await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
        told = read_trades(c.store.storage, "simulated", SYMBOL, since, done.cursor.last_ts + 1)
        reader = HistoryReader(NET, f"{NET}:BTC", f"{NET}:USDT", tmp_path)
        await until(lambda: reader.volume()["trades"] == len(told), "every trade is applied")
        # Asked for once more from the beginning: all of them are repetitions.
        await database.jobs.update_one(
            {"_id": job.id}, {"$set": {"cursor.since_ms": since, "cursor.until_ms": None}}
        )
        await c.queue.run(job.id)
        await c.until(job, lambda job: job.document["stats"]["success"] >= 2)
        end = since + 19 * MINUTE
        items = reader.market_rate("ohlcv", since, end)["items"]
    told = read_trades(c.store.storage, "simulated", SYMBOL, since, end).to_pylist()
    assert len(items) > 10
    names = ("ts", "close", "sum_base", "sum_quote", "trades")
    assert [tuple(int(each[name]) for name in names) for each in items] == candles_of(told)


async def test_a_network_that_is_not_in_the_settings_fails_the_job_with_its_name(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG, history=HistoryTerms((NET,))) as c:
        since = c.exchange.now_ms() - 5 * MINUTE
        cursor = Cursor(since_ms=since)
        params = {"history": "simulatd"}
        job = await c.job("trades_incremental", timeframe=None, cursor=cursor, params=params)
        failed = await c.until(job, lambda job: job.state is State.FAILED)
    assert "there is no network 'simulatd'" in failed.document["stats"]["last_error"]
    assert failed.cursor.since_ms == since, "nothing was passed over"
