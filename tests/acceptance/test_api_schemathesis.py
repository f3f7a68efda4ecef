"""schemathesis against a real API process: no 5xx, and every answer as the document says.

Everything is asked for: examples, boundary values, random requests, right and wrong ones, and
chains of requests along the links between operations. `make chaos` asks far more.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.port import Ticker
from collector.exchanges.registry import known_exchanges
from collector.market.series import Series
from collector.market.trade import Trade
from collector.markets.tickers import TickerBoard
from collector.store.store import Store
from collector.store.trades import append_trades
from tests.support.bars import T0, bars, span
from tests.support.fleet import LONG
from tests.support.local_api import LISTED, know_markets
from tests.support.processes import program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database

KEY = "a key that only these tests know"
REQUESTS, CHAINS_S = (150, 600) if LONG else (8, 15)
"""How many random requests an operation gets, and for how long chains are tried."""
LEAST_COVERED = 0.8 if LONG else 0.2
"""Of the links. Measured: 0.8 in 15 s."""
LUCK = () if LONG else ("--seed=3",)
"""The long form never asks the same twice; its seed is printed."""
TIMEOUT_S = 3_600 if LONG else 600
CONFIG = Path(__file__).with_name("schemathesis.toml")


@asynccontextmanager
async def api(database: Database, mongo_uri: str, root: Path) -> AsyncIterator[str]:
    """The address of an API with something to answer: a connector, markets, bars and so on."""
    await ConnectorRegistry(database).ensure("simulated", Limits(1_000, 1_000))
    for exchange_id in known_exchanges():
        # Of those that are not known the API would ask the exchange, which is not here.
        await know_markets(database, exchange_id)
    series = Series.of("simulated", "BTC/USDT", "1m")
    prices = {minute: 100.0 + minute for minute in range(10) if minute != 4}
    store = Store(root / "lake")
    store.append_page(series, bars(prices), span(0, 10), fence=1, known_at=1_000)
    trades = [Trade(str(n), T0 + n, 100.0 + n, 1.0, "buy") for n in range(10)]
    append_trades(store.storage, "simulated", "BTC/USDT", trades, known_at=1_000)
    tickers = [Ticker(symbol, 2.0, 1.0, None, 10.0, ts=T0) for symbol in LISTED]
    await TickerBoard(database).save("simulated", tickers)
    settings = {
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
        "COLLECTOR_HOME": str(root / "home"),
        "COLLECTOR_DATA": str(root / "lake"),
        "COLLECTOR_HISTORY__NETWORKS": json.dumps(["riemann"]),
        "COLLECTOR_API_KEYS": f"admin:{hashlib.sha256(KEY.encode()).hexdigest()}",
    }
    async with program("api", "--port", "0", **settings) as process:
        yield await process.address()
        assert process.lines("request_crashed") == []


async def ask(address: str, report: Path, *options: str) -> tuple[dict[str, Any], str]:
    """One run of schemathesis: its report, and what it printed. Fails with what it printed."""
    async with program(
        "schemathesis.cli",
        f"--config-file={CONFIG}",
        "run",
        f"{address}/openapi.json",
        "--no-color",
        f"--report-json-path={report}",
        *options,
        API_KEY=KEY,
    ) as process:
        printed = await process.output()
        code = await process.ended()
    assert code == 0, printed
    found: dict[str, Any] = json.loads(report.read_text("utf-8"))
    assert found["complete"], printed
    return found, printed


@pytest.mark.timeout(TIMEOUT_S)
async def test_every_answer_is_as_documented(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with api(database, mongo_uri, tmp_path) as address:
        report, printed = await ask(address, tmp_path / "report.json", f"-n{REQUESTS}", *LUCK)
    operations = report["operations"]
    assert operations["tested"] == operations["total"] - 1, "all but the stream of events"
    assert {name: phase["status"] for name, phase in report["phases"].items()} == dict.fromkeys(
        ("examples", "coverage", "fuzzing", "stateful"), "success"
    ), printed


@pytest.mark.timeout(TIMEOUT_S)
async def test_links_lead_where_the_document_says(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    """Chains that begin where something is made.

    schemathesis trusts an operation as a beginning unless it names something that no operation
    makes, and takes an exchange for such a thing. It begins there when there is nothing better,
    so the lists, which it likes better, are for the other test.
    """
    async with api(database, mongo_uri, tmp_path) as address:
        _, printed = await ask(
            address,
            tmp_path / "report.json",
            f"--max-time={CHAINS_S}",
            *LUCK,
            "--phases=stateful",
            "--include-path-regex=/(connectors|jobs|streams)",
            "--exclude-operation-id=list_connectors",
            "--exclude-operation-id=list_jobs",
            # A chain ends where it ends: some operations may not have been reached.
            "--exclude-checks=EverythingWasReached",
        )
    links = re.search(r"API Links: +(\d+) covered / (\d+) selected", printed)
    assert links is not None, printed
    covered, selected = map(int, links.groups())
    assert covered >= selected * LEAST_COVERED, printed
