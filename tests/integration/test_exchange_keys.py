"""A key on its way from settings to a venue: the venue sees it, the database never does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.clock import SystemClock
from collector.connectors.limiter import Limiter
from collector.errors import KeyRefused
from collector.operations.applied_settings import apply_settings
from collector.settings import Settings
from collector.store.store import Store
from tests.support.ccxt_venue import Venue, says, serving
from workers.venues import Venues

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


@pytest.mark.parametrize("read_only", [1, 0])
async def test_a_worker_gives_the_key_to_the_venue_and_to_nobody_else(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: int
) -> None:
    monkeypatch.setenv("COLLECTOR_SECRET_BYBIT_READ", "the-key:the-secret")
    settings = Settings(home=tmp_path, exchanges={"bybit": {"key_ref": "secret://bybit/read"}})
    await apply_settings(database, settings)
    venue = Venue("bybit")
    venue.turns.append(says(200, {"retCode": 0, "result": {"readOnly": read_only}}))
    async with (
        serving(venue) as address,
        Limiter(database) as limiter,
        Venues(
            database,
            limiter,
            Store(tmp_path),
            urls={"bybit": address},
            patience=1,
            clock=SystemClock(),
            keyring=settings.keyring,
        ) as venues,
    ):
        if read_only:
            await venues.with_markets("bybit")
        else:
            with pytest.raises(KeyRefused):
                await venues.with_markets("bybit")
            assert len(venue.requests) == 1
    asked, *others = venue.requests
    assert asked.headers["X-BAPI-API-KEY"] == "the-key"
    assert not any("X-BAPI-API-KEY" in request.headers for request in others)
    for name in await database.raw.list_collection_names():
        stored = str(await database.raw[name].find().to_list())
        assert not any(word in stored for word in ("the-key", "the-secret", "secret://")), name
