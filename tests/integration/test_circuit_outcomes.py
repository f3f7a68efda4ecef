"""What the shared circuit gate counts, and how outcomes reach it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.limiter import Limiter
from collector.errors import (
    CollectorError,
    DatabaseUnavailable,
)
from collector.simulated.faults.catalogue import parse_faults
from tests.integration.circuit_desk import (
    EXCHANGE,
    circuit_of,
    desk,
    make,
    venue,
)
from tests.support.until import until

if TYPE_CHECKING:
    from collector.mongo.client import Database

COUNTED: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "an answer": ({"kind": "latency", "ms": 1}, (1, 0)),
    "a 503": ({"kind": "server_error"}, (0, 1)),
    "a time-out": ({"kind": "hang"}, (0, 1)),
    "a reset": ({"kind": "reset"}, (0, 1)),
    "half a body": ({"kind": "truncated"}, (0, 1)),
    "no JSON": ({"kind": "malformed"}, (0, 1)),
    "HTML": ({"kind": "html"}, (0, 1)),
    "a 429": ({"kind": "too_many_requests"}, (0, 0)),
    "a 418": ({"kind": "ban", "retry_after_s": 1}, (0, 0)),
    "a 400": ({"kind": "server_error", "status": 400}, (0, 0)),
    "a 451": ({"kind": "server_error", "status": 451}, (0, 0)),
}


@pytest.mark.parametrize("name", COUNTED)
async def test_what_counts(database: Database, mongo_uri: str, name: str) -> None:
    fault, expected = COUNTED[name]
    await make(database, CircuitSettings())
    async with venue() as exchange:
        exchange.faults.add(*parse_faults(fault))
        timeout_ms = 100 if fault["kind"] == "hang" else 10_000
        async with desk(mongo_uri, database.raw.name, exchange.url, timeout_ms=timeout_ms) as one:
            with suppress(CollectorError):
                await one.ask()
    bins = (await circuit_of(database)).get("bins") or []
    assert (sum(b["ok"] for b in bins), sum(b["err"] for b in bins)) == expected


async def test_a_request_we_gave_up_ourselves_does_not_count(
    database: Database, mongo_uri: str
) -> None:
    await make(database, CircuitSettings())
    async with venue() as exchange:
        exchange.faults.add(*parse_faults({"kind": "hang"}))
        async with desk(mongo_uri, database.raw.name, exchange.url) as one:
            asking = asyncio.create_task(one.ask())
            await until(exchange.journal.since, "the request has arrived")
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert not (await circuit_of(database)).get("bins")


async def test_good_outcomes_share_a_statement_and_a_bad_one_is_written_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(database, CircuitSettings())
    folds = 0
    send = database.connectors.find_one_and_update

    async def counting(*args: Any, **options: Any) -> Any:
        nonlocal folds
        folds += options.get("projection") == {"circuit": 1}
        return await send(*args, **options)

    monkeypatch.setattr(database.connectors, "find_one_and_update", counting)
    async with Limiter(database) as limiter:
        for number in range(1_000):
            await limiter.circuit(EXCHANGE).note("bad" if number % 100 == 99 else "good")
            if number % 100 == 99:
                written = (await circuit_of(database))["bins"]
                assert sum(b["ok"] + b["err"] for b in written) == number + 1
            await asyncio.sleep(0.0005)
    bins = (await circuit_of(database))["bins"]
    assert sum(b["ok"] + b["err"] for b in bins) == 1_000, "none is lost"
    assert 10 <= folds <= 100


async def test_outcomes_wait_out_an_outage(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(database, CircuitSettings())
    send, away = database.connectors.find_one_and_update, True

    async def cut(*args: Any, **options: Any) -> Any:
        if away:
            raise DatabaseUnavailable("cut")
        return await send(*args, **options)

    monkeypatch.setattr(database.connectors, "find_one_and_update", cut)
    async with Limiter(database) as limiter:
        for _ in range(20):
            await limiter.circuit(EXCHANGE).note("bad")
        away = False

        async def tripped() -> bool:
            return (await circuit_of(database)).get("state") == "TRIPPED"

        await until(tripped, "the gate trips")
