"""Verbs of `datalayer`, run in this process beside a worker and a simulated exchange."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from collector.cli.datalayer import app
from collector.market.series import Series
from tests.support.local_collector import DAY, Collecting, collecting
from tests.support.verbs import Ended, run_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.market.candles import CandleBatch
    from collector.market.interval import Interval
    from collector.mongo.client import Database

DAYS = 3
BTC = Series.of("simulated", "BTC/USDT", "1m")


@dataclass(frozen=True)
class Stage:
    """A simulated exchange of three days, a worker, and verbs that run beside it."""

    collecting: Collecting
    root: Path

    async def run(self, line: str) -> Ended:
        return await run_here(*line.split(), program=app)

    def klines(self) -> int:
        return len(self.collecting.journal())

    def day(self, number: int) -> str:
        return str(self.first_ms + number * DAY)

    @property
    def first_ms(self) -> int:
        return self.collecting.first_ms

    def keep(self, batch: CandleBatch, stretch: Interval) -> None:
        self.collecting.store.append_page(BTC, batch, stretch, fence=1, known_at=1_000)


@pytest.fixture
async def stage(
    database: Database, mongo_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stage]:
    async with collecting(database, tmp_path / "data", days=DAYS) as collector:
        for name, value in {
            "HOME": str(tmp_path),
            "MONGO_URI": mongo_uri,
            "MONGO_DB": database.raw.name,
            "EXCHANGE_URLS": json.dumps({"simulated": collector.exchange.url}),
            "API__ADAPTER": "simulated",
        }.items():
            monkeypatch.setenv(f"COLLECTOR_{name}", value)
        monkeypatch.chdir(tmp_path)
        yield Stage(collector, tmp_path)
