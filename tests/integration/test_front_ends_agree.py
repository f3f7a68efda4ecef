"""REST and the command line, asked for the same: the same job, or refused for the same reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from collector.cli import database as verb_database
from collector.cli.actions import connectors as connector_verbs
from collector.cli.actions import jobs as job_verbs
from collector.cli.actions.bulk_jobs import Many, changed
from collector.cli.actions.new_job import Wanted
from collector.cli.verb import Asked
from collector.errors import CollectorError, InvalidInput, NotFound
from collector.jobs.queue import JobQueue
from collector.operations import connectors
from tests.support.local_api import Client, know_markets, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.mongo.client import Database

SERIES = {"symbol": "BTC/USDT", "timeframe": "1m"}


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[Client]:
    await connectors.ensure(database, "simulated")
    await know_markets(database)
    async with serving(database, tmp_path) as client:
        yield client


@pytest.fixture
def asked(
    database: Database, mongo_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Asked:
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo_uri)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", database.raw.name)
    # Logs are configured for a whole process, and this one has other tests.
    monkeypatch.setattr(verb_database, "keep_quiet", lambda _: None)
    return Asked(json=True)


async def by_rest(client: Client, kind: str, fields: dict[str, Any]) -> Any:
    body = {"exchange_id": "simulated", "type": kind, **fields}
    return await client.post("/api/v1/jobs", body)


async def by_verb(asked: Asked, kind: str, fields: dict[str, Any]) -> Any:
    return (await job_verbs.add(asked, Wanted("simulated", kind, **fields))).facts["job"]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("ohlcv_incremental", {**SERIES, "since": "2025-01-01T00:00:30Z"}),
        ("ohlcv_backfill", {**SERIES, "since": "2025-01-01T00:00:30Z"}),
        (
            "gap_backfill",
            {**SERIES, "since": "2025-01-01T00:00:30Z", "until": "2025-01-01T01:00:30Z"},
        ),
        ("trades_incremental", {"symbol": "BTC/USDT", "since": "2025-01-01T00:00:30Z"}),
        ("tickers_snapshot", {}),
    ],
)
async def test_the_same_job_is_made(
    client: Client, asked: Asked, database: Database, kind: str, fields: dict[str, Any]
) -> None:
    one = (await by_rest(client, kind, fields)).body
    await JobQueue(database).delete(one["id"])
    other = await by_verb(asked, kind, fields)
    assert one["id"] != other["id"]
    ends = ("since_ms",) if kind == "ohlcv_backfill" else ("since_ms", "until_ms")
    assert [one["cursor"][name] for name in ends] == [other["cursor"][name] for name in ends]
    assert one["cursor"]["since_ms"] % 60_000 == (30_000 if kind == "trades_incremental" else 0)
    for name in ("type", "symbol", "timeframe", "priority", "params"):
        assert one[name] == other[name]
    assert json.dumps(one["schedule"]) == json.dumps(other["schedule"])


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        ("ohlcv_backfill", {"symbol": "BTC/USDT"}, "missing"),
        ("gap_backfill", {**SERIES, "since": "2025-01-01"}, "missing"),
        ("compact", SERIES, "not_allowed"),
        ("ohlcv_backfill", {**SERIES, "since": "2099-01-01"}, "in_the_future"),
        (
            "gap_backfill",
            {**SERIES, "since": "2025-01-01T00:00:10Z", "until": "2025-01-01T00:00:20Z"},
            "nothing_to_fetch",
        ),
        (
            "ohlcv_backfill",
            {**SERIES, "since": "2025-01-02", "until": "2025-01-01"},
            "until_before_since",
        ),
        ("ohlcv_backfill", {"symbol": "BTC/USTD", "timeframe": "1m"}, "unknown_symbol"),
        ("ohlcv_backfill", {"symbol": "BTC/USDT", "timeframe": "7m"}, "unknown_timeframe"),
    ],
)
async def test_the_same_request_is_refused(
    client: Client, asked: Asked, kind: str, fields: dict[str, Any], code: str
) -> None:
    answer = await by_rest(client, kind, fields)
    with pytest.raises(InvalidInput) as refused:
        await by_verb(asked, kind, fields)
    assert (answer.status, answer.code) == (422, code)
    assert (refused.value.code, refused.value.exit_code) == (code, 2)
    [blamed] = answer.body["errors"]
    assert (blamed["field"], blamed["near"]) == (refused.value.field, list(refused.value.near))


async def test_a_deleted_job_is_not_found_by_either(
    client: Client, asked: Asked, database: Database
) -> None:
    job = (await by_rest(client, "tickers_snapshot", {})).body
    await JobQueue(database).delete(job["id"])
    for verb in ("pause", "resume", "run"):
        assert (await client.post(f"/api/v1/jobs/{job['id']}/{verb}")).code == "not_found"
    for verb in ("pause", "resume", "run", "remove"):
        with pytest.raises(NotFound):
            await changed(asked, verb, [job["id"]], Many())


async def test_a_pause_that_is_over_is_refused_by_both(client: Client, asked: Asked) -> None:
    path = "/api/v1/connectors/simulated/pause"
    answer = await client.post(path, {"until": "2025-01-01"})
    with pytest.raises(CollectorError) as refused:
        await connector_verbs.paused(asked, "simulated", "2025-01-01")
    assert answer.code == refused.value.code == "in_the_past"
