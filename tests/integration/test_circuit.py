"""The shared circuit gate on a real mongod: two workers' permits, one gate."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.circuit.shared import SharedCircuit
from collector.connectors.circuit.state import CircuitState, CircuitTransition
from collector.connectors.limiter import Limiter
from collector.connectors.permit import ConnectorPermit
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.token import Token
from collector.errors import (
    ExchangeUnavailable,
    RateLimited,
)
from collector.exchanges.port import Answer, Call
from collector.exchanges.registry import quirks_for
from collector.simulated.faults.catalogue import parse_faults
from tests.integration.circuit_desk import (
    EXCHANGE,
    QUICK,
    SHORT_LEASE,
    Desk,
    circuit_of,
    denied,
    desk,
    make,
    probe_of,
    trip,
    venue,
)
from tests.support.circuit_transitions import witnessed
from tests.support.local_api import serving
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


@pytest.mark.tokens_age
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
            await until(lambda: witness.states.count("TRIPPED") >= 2, "it trips twice")
            exchange.faults.clear()
            await until(lambda: witness.states[-1] == "OPEN", "it opens")
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

        async def asked() -> bool:
            with suppress(RateLimited):
                await two.ask()
                return True
            return False

        await until(exchange.journal.since, "the probe has arrived")
        await until(asked, "another one may ask")
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
        await permit.after(Answer(call, "2xx", 0.1, health="good"))
    assert (await circuit_of(database))["probe"] is None


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
            async with asyncio.timeout(120):
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


async def test_a_worker_reports_as_often_as_the_settings_of_the_gate_say(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Settings of the connector's document reach the gate of every process."""
    caplog.set_level(logging.INFO, logger="collector.circuit")
    settings = CircuitSettings(
        circuit_min_events=2,
        circuit_min_closed_sec=1,
        circuit_half_open_probe=1,
        max_log_lines_per_sec=1,
    )
    await make(database, settings)
    shared = SharedCircuit(database.connectors, EXCHANGE)
    await shared.note("good")
    await shared.close()  # writes, and reads the settings
    await shared.note("bad")
    assert (await circuit_of(database))["state"] == "TRIPPED"
    changes = [CircuitTransition(CircuitState.OPEN, CircuitState.TRIPPED, 0.5, 300, 7)] * 3
    for change in changes:
        shared._telemetry.changed(change)
    lines = [each for each in caplog.records if " now=7" in each.getMessage()]
    assert len(lines) == 1, "one line a second, as the connector says"
    await shared.close()
