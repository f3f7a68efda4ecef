"""What the tests of the shared circuit gate stand on: a worker's permit, a venue, a trip."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.permit import ConnectorPermit
from collector.connectors.registry import ConnectorRegistry
from collector.errors import (
    RateLimited,
)
from collector.exchanges.registry import open_exchange, quirks_for
from collector.mongo.client import Database
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.exchanges.port import Exchange

EXCHANGE = "simulated"
PLENTY = 100_000
QUICK = CircuitSettings(
    circuit_window_sec=30,
    circuit_max_err_rate_ratio=0.3,
    circuit_min_closed_sec=2,
    circuit_half_open_probe=3,
    circuit_min_events=10,
    circuit_probe_lease_sec=20,
)
SHORT_LEASE = CircuitSettings(
    circuit_half_open_probe=1, circuit_min_closed_sec=1, circuit_probe_lease_sec=1
)


@dataclass
class Desk:
    """One worker's way to the exchange."""

    limiter: Limiter
    exchange: Exchange

    async def ask(self) -> None:
        await self.exchange.server_ms()


@asynccontextmanager
async def desk(uri: str, name: str, url: str, *, timeout_ms: int = 10_000) -> AsyncIterator[Desk]:
    """A worker's own database connection, limiter and adapter."""
    async with Database(uri, name) as database, Limiter(database) as limiter:
        await database.read_server_clock()
        registry = ConnectorRegistry(database)
        permit = ConnectorPermit(limiter, registry, quirks_for(EXCHANGE), patience=0.0)
        adapter = open_exchange(
            EXCHANGE, permit, urls={EXCHANGE: url}, clock=SystemClock(), timeout_ms=timeout_ms
        )
        try:
            yield Desk(limiter, adapter)
        finally:
            await adapter.close()


@asynccontextmanager
async def venue() -> AsyncIterator[SimulatedExchange]:
    today_ms = SystemClock().wall_ms() // 86_400_000 * 86_400_000
    async with SimulatedExchange(listed=listings(1, listed_ms=today_ms)) as exchange:
        yield exchange


async def make(database: Database, circuit: CircuitSettings) -> None:
    limits = Limits(PLENTY, 1_000, circuit=circuit)
    await ConnectorRegistry(database).ensure(EXCHANGE, limits)


async def circuit_of(database: Database) -> dict[str, Any]:
    document = await database.connectors.find_one({"exchange_id": EXCHANGE})
    assert document is not None
    found: dict[str, Any] = document["circuit"]
    return found


async def trip(database: Database, *, for_ms: int = 0) -> None:
    """As if it had tripped, `for_ms` before the end of its hold."""
    until = (await database.read_server_clock()).timestamp() * 1000 + for_ms
    fields = {"circuit.state": "TRIPPED", "circuit.tripped_until": round(until)}
    await database.connectors.update_one({"exchange_id": EXCHANGE}, {"$set": fields})


async def denied(limiter: Limiter) -> RateLimited:
    with pytest.raises(RateLimited) as caught:
        await limiter.acquire(EXCHANGE)
    return caught.value


async def probe_of(limiter: Limiter) -> str:
    """The probe, as soon as the place is free."""

    async def probe() -> str | None:
        with suppress(RateLimited):
            token = await limiter.acquire(EXCHANGE)
            assert token.probe is not None
            return token.probe
        return None

    return str(await until(probe, "the place of the probe is free"))
