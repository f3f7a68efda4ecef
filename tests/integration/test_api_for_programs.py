"""What programs that speak HTTP expect of the API beside its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.app import Door, create_app
from collector.connectors.registry import ConnectorRegistry
from tests.support.local_api import serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

CONNECTOR = {"exchange_id": "simulated"}


async def test_what_was_made_says_where_it_is(database: Database, tmp_path: Path) -> None:
    async with serving(database, tmp_path) as client:
        made = await client.post("/api/v1/connectors", CONNECTOR)
        assert made.headers["Location"] == "/api/v1/connectors/simulated"
        assert (await client.get(made.headers["Location"])).body["exchange_id"] == "simulated"
        job = await client.post(
            "/api/v1/jobs", {"exchange_id": "simulated", "type": "tickers_snapshot"}
        )
        assert (await client.get(job.headers["Location"])).body["id"] == job.body["id"]


async def test_a_connector_shows_whether_it_is_blocked_and_whether_it_is_stopped(
    database: Database, tmp_path: Path
) -> None:
    registry = ConnectorRegistry(database)
    async with serving(database, tmp_path) as client:
        shown = [(await client.post("/api/v1/connectors", CONNECTOR)).body]
        shown.append((await client.post("/api/v1/connectors/simulated/pause")).body)
        await client.post("/api/v1/connectors/simulated/resume")
        until = await database.now_ms() + 3_600_000
        await registry.block("simulated", until_ms=until, reason="429")
        shown.append((await client.get("/api/v1/connectors/simulated")).body)
        words = [(each["blocked"], each["stopped"]) for each in shown]
        assert words == [(False, False), (False, True), (True, True)]


async def test_the_schema_always_has_the_security_scheme(
    database: Database, tmp_path: Path
) -> None:
    async with serving(database, tmp_path) as client:
        document = create_app(client.services, Door()).openapi()
        assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
