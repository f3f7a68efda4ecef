"""The shared circuit gate on a real mongod: two workers' permits, one gate."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.connectors.circuit import CircuitSettings
from collector.connectors.connector import Limits
from collector.connectors.gate import ConnectorPermit, GatedExchange
from collector.connectors.limiter import Limiter, Token
from collector.connectors.registry import ConnectorRegistry
from collector.errors import (
    CollectorError,
    DatabaseUnavailable,
    ExchangeUnavailable,
    RateLimited,
)
from collector.exchanges.port import Answer, Call
from collector.exchanges.quirks import quirks_for
from collector.exchanges.registry import open_exchange
from collector.exchanges.simulated.faults.catalogue import parse_faults
from collector.exchanges.simulated.listing import listings
from collector.exchanges.simulated.server import SimulatedExchange
from collector.mongo.client import Database
from tests.integration.circuit_witness import witnessed
from tests.integration.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

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
            yield Desk(limiter, GatedExchange(adapter, registry))
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
    async with asyncio.timeout(20):
        while True:
            with suppress(RateLimited):
                token = await limiter.acquire(EXCHANGE)
                assert token.probe is not None
                return token.probe
            await asyncio.sleep(0.02)


async def test_forty_percent_errors_in_front_of_two_workers(
    database: Database, mongo_uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is sent while TRIPPED, probes go one at a time, and each change is told once."""
    caplog.set_level(logging.INFO, logger="collector.circuit")
    await make(database, QUICK)
    async with (
        venue() as exchange,
        witnessed(database) as witness,
        desk(mongo_uri, database.raw.name, exchange.url) as one,
        desk(mongo_uri, database.raw.name, exchange.url) as two,
    ):
        fault = {"kind": "server_error", "endpoint": "time", "probability": 0.4}
        exchange.faults.add(*parse_faults(fault))
        stop = asyncio.Event()

        async def keep_asking(worker: Desk) -> None:
            while not stop.is_set():
                with suppress(RateLimited, ExchangeUnavailable):
                    await worker.ask()
                await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as group:
            for worker in (one, two, one, two):
                group.create_task(keep_asking(worker))
            async with asyncio.timeout(60):
                while witness.states.count("TRIPPED") < 2:
                    await asyncio.sleep(0.02)
                exchange.faults.clear()
                while witness.states[-1] != "OPEN":
                    await asyncio.sleep(0.02)
            stop.set()
        entries = exchange.journal.since()

    lines = [each.getMessage() for each in caplog.records if each.name == "collector.circuit"]
    witness.check_every_change_was_told_once(lines)
    witness.check_what_the_exchange_saw(entries, QUICK.circuit_half_open_probe)


async def test_a_trip_stops_the_other_worker_at_its_next_token(
    database: Database, mongo_uri: str
) -> None:
    await make(database, CircuitSettings())
    async with Limiter(database) as one, Limiter(database) as two:
        for _ in range(20):
            await one.acquire(EXCHANGE)
            await one.circuit(EXCHANGE).note("bad")
        refusal = await denied(two)
        assert refusal.reason == "circuit"
        assert (refusal.retry_after_ms or 0) > 30_000
        assert (await denied(one)).retry_at_ms == refusal.retry_at_ms
    assert (await circuit_of(database))["state"] == "TRIPPED"


async def test_one_probe_at_a_time_and_so_many_successes_as_configured(database: Database) -> None:
    await make(database, QUICK)
    async with Limiter(database) as one, Limiter(database) as two:
        await trip(database)
        limiters = [one, two, one]
        for number, limiter in enumerate(limiters, start=1):
            answers = await asyncio.gather(
                *(each.acquire(EXCHANGE) for each in (one, two) * 5), return_exceptions=True
            )
            probes = [answer.probe for answer in answers if isinstance(answer, Token)]
            assert len(probes) == 1
            assert (await denied(limiter)).reason == "circuit"
            await limiter.circuit(EXCHANGE).note("good", probes[0])
            state = (await circuit_of(database))["state"]
            assert state == ("OPEN" if number == len(limiters) else "HALF_OPEN")
        tokens = await asyncio.gather(*(one.acquire(EXCHANGE) for _ in range(10)))
        assert {token.probe for token in tokens} == {None}


async def test_a_failed_probe_trips_it_again(database: Database) -> None:
    await make(database, QUICK)
    async with Limiter(database) as one, Limiter(database) as two:
        await trip(database)
        await one.circuit(EXCHANGE).note("bad", await probe_of(one))
        assert (await denied(two)).reason == "circuit"
    circuit = await circuit_of(database)
    assert (circuit["state"], circuit["probe"]) == ("TRIPPED", None)


async def test_a_probe_that_tells_nothing_gives_the_place_back(database: Database) -> None:
    await make(database, QUICK)
    async with Limiter(database) as one, Limiter(database) as two:
        await trip(database)
        await one.circuit(EXCHANGE).note("unknown", await probe_of(one))
        circuit = await circuit_of(database)
        assert (circuit["state"], circuit["successes"]) == ("HALF_OPEN", 0)
        assert (await two.acquire(EXCHANGE)).probe is not None


async def test_a_hanging_probe_cannot_hold_the_gate(database: Database, mongo_uri: str) -> None:
    await make(database, SHORT_LEASE)
    async with (
        venue() as exchange,
        desk(mongo_uri, database.raw.name, exchange.url, timeout_ms=60_000) as one,
        desk(mongo_uri, database.raw.name, exchange.url) as two,
    ):
        await trip(database)
        exchange.faults.add(*parse_faults({"kind": "hang", "count": 1}))
        hanging = asyncio.create_task(one.ask())
        async with asyncio.timeout(30):
            while not exchange.journal.since():
                await asyncio.sleep(0.01)
            while True:
                with suppress(RateLimited):
                    await two.ask()
                    break
                await asyncio.sleep(0.02)
        assert not hanging.done()
        assert (await circuit_of(database))["state"] == "OPEN"
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)


async def test_a_probe_that_comes_too_late_judges_nothing(database: Database) -> None:
    await make(database, SHORT_LEASE)
    async with Limiter(database) as one, Limiter(database) as two:
        await trip(database)
        late, current = await probe_of(one), await probe_of(two)
        await one.circuit(EXCHANGE).note("bad", late)
        circuit = await circuit_of(database)
        assert (circuit["state"], circuit["probe"]["id"]) == ("HALF_OPEN", current)
        await two.circuit(EXCHANGE).note("good", current)
        assert (await circuit_of(database))["state"] == "OPEN"


async def test_a_probe_token_that_grew_stale_is_bought_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(database, QUICK)
    good_until = iter([0.0, math.inf])
    monkeypatch.setattr(Token, "good_until", property(lambda _: next(good_until)))
    async with Limiter(database) as limiter:
        await trip(database)
        token = await limiter.acquire(EXCHANGE)
        assert token.probe == (await circuit_of(database))["probe"]["id"]


async def test_a_probe_that_could_not_leave_in_time_is_sent_with_the_next_token(
    database: Database,
) -> None:
    await make(database, QUICK)
    async with Limiter(database) as limiter:
        await trip(database)
        registry = ConnectorRegistry(database)
        permit = ConnectorPermit(limiter, registry, quirks_for(EXCHANGE), patience=5)
        call = Call(EXCHANGE, "klines")
        await permit.before(call)
        await permit.before(call)  # any other request is refused while a probe is on its way
        await permit.after(Answer(call, 200, {}, 0.1, "good"))
    assert (await circuit_of(database))["probe"] is None


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
            async with asyncio.timeout(20):
                while not exchange.journal.since():
                    await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    assert not (await circuit_of(database)).get("bins")


async def test_many_requests_share_one_statement(
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
            await limiter.circuit(EXCHANGE).note("bad" if number % 4 == 0 else "good")
            await asyncio.sleep(0.0005)
    bins = (await circuit_of(database))["bins"]
    assert sum(b["ok"] + b["err"] for b in bins) == 1_000, "none is lost"
    assert 1 <= folds <= 100


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
        async with asyncio.timeout(10):
            while (await circuit_of(database)).get("state") != "TRIPPED":
                await asyncio.sleep(0.02)


async def test_settings_snapshot_metrics_and_events_over_rest(
    database: Database, tmp_path: Path
) -> None:
    path = f"/api/v1/connectors/{EXCHANGE}"
    async with serving(database, tmp_path) as client, Limiter(database) as limiter:
        body = {"exchange_id": EXCHANGE, "circuit": {"circuit_min_events": 5}}
        made = await client.post("/api/v1/connectors", body)
        assert (made.status, made.body["circuit"]["settings"]["circuit_min_events"]) == (201, 5)
        assert made.body["circuit"]["settings"]["circuit_window_sec"] == 300
        changed = await client("PATCH", path, {"circuit": {"circuit_max_err_rate_ratio": 1}})
        assert changed.body["circuit"]["settings"]["circuit_max_err_rate_ratio"] == 1
        assert changed.body["circuit"]["settings"]["circuit_min_events"] == 5, "what is left out"
        for wrong in ({"circuit_max_err_rate_ratio": 0}, {"circuit_window_sec": 0}, {"speed": 1}):
            assert (await client("PATCH", path, {"circuit": wrong})).status == 422
        async with client.session.get("/api/v1/events") as events:
            assert await events.content.readline() == b": listening\n"
            for _ in range(5):
                await limiter.circuit(EXCHANGE).note("bad")
            async with asyncio.timeout(10):
                while await events.content.readline() != b"event: circuit\n":
                    pass
                said = json.loads((await events.content.readline()).removeprefix(b"data: "))
        assert (said["exchange_id"], said["state_from"], said["state"]) == (
            EXCHANGE,
            "OPEN",
            "TRIPPED",
        )
        shown = (await client.get(path)).body["circuit"]
        assert (shown["state"], shown["err_rate"], shown["window_len"]) == ("TRIPPED", 1.0, 5)
        assert shown["tripped_until"] > shown["last_transition_ts"] * 1000 > 0
        figures = (await client.get("/metrics")).body
        assert f'circuit_state{{exchange="{EXCHANGE}"}} 1.0' in figures
        assert f'circuit_err_rate_window{{exchange="{EXCHANGE}"}} 1.0' in figures
        assert figures.count("# TYPE circuit_state gauge") == 1


async def test_a_connector_from_before_there_were_gates_has_one_by_default(
    database: Database,
) -> None:
    await make(database, CircuitSettings())
    await database.connectors.update_one({"exchange_id": EXCHANGE}, {"$unset": {"circuit": 1}})
    async with Limiter(database) as limiter:
        assert (await limiter.acquire(EXCHANGE)).probe is None
        for _ in range(20):
            await limiter.circuit(EXCHANGE).note("bad")
        assert (await denied(limiter)).reason == "circuit"


async def test_changing_settings_keeps_the_state(database: Database) -> None:
    await make(database, CircuitSettings())
    await trip(database, for_ms=600_000)
    registry = ConnectorRegistry(database)
    await registry.change_limits(EXCHANGE, {"circuit.settings.circuit_window_sec": 60})
    circuit = await circuit_of(database)
    assert (circuit["state"], circuit["settings"]["circuit_window_sec"]) == ("TRIPPED", 60)
    assert circuit["settings"]["circuit_min_events"] == 20
