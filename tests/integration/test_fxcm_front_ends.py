"""FXCM over REST and on the command line: used like any exchange, logged in by neither."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from collector.cli.datalayer import app as datalayer
from collector.clock import SystemClock
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from tests.support.fxcm.collecting import DAY, FIRST_MS, FxcmCollecting, true_bars
from tests.support.local_api import serving
from tests.support.until import until
from tests.support.verbs import run_here

if TYPE_CHECKING:
    import pytest

    from tests.support.local_api import Client

CONNECTOR = "/api/v1/connectors/fxcm"
JOB = {"exchange_id": "fxcm", "type": "ohlcv_incremental", "symbol": "XAU/USD", "timeframe": "5m"}


async def state(client: Client) -> str:
    return str((await client.get(CONNECTOR)).body["session"]["state"])


async def test_a_connector_is_made_like_any_other(fx: FxcmCollecting) -> None:
    await fx.database.connectors.delete_many({})
    async with serving(fx.database, fx.root) as client:
        made = await client.post("/api/v1/connectors", {"exchange_id": "fxcm"})
        assert made.status == 201, made.body
        assert (made.body["rate_limit"], made.body["rate_limit_period_ms"]) == (120, 60_000)
        [hour] = made.body["windows"]
        assert (hour["limit"], hour["period_ms"]) == (2400, 3_600_000)
        session = made.body["session"]
        assert (session["state"], session["holder"]) == ("DISCONNECTED", None)
        assert (await client.get(CONNECTOR)).body["session"] == session
        other = await client.post("/api/v1/connectors", {"exchange_id": "simulated"})
        assert other.body["session"] is None
    assert not fx.server.count("login")


async def test_the_api_leaves_markets_to_a_worker_and_says_so_while_there_is_none(
    fx: FxcmCollecting,
) -> None:
    async with serving(fx.database, fx.root, patience=0.3) as client:
        answer = await client.post("/api/v1/jobs", JOB)
        assert (answer.status, answer.code) == (503, "markets_unavailable")
        [refresh] = await fx.queue.find({"type": "markets_refresh"})
        assert refresh.state == "queued"
        assert not fx.server.count("login")


async def test_jobs_and_state_over_rest_beside_a_worker(fx: FxcmCollecting) -> None:
    async with fx.worker(), serving(fx.database, fx.root, patience=60) as client:
        since_ms = Timeframe.parse("5m").at("fxcm").shift(SystemClock().wall_ms(), -20)
        made = await client.post("/api/v1/jobs", {**JOB, "since": since_ms})
        assert made.status == 201, made.body
        unknown = await client.post("/api/v1/jobs", {**JOB, "symbol": "XAU/EUR"})
        assert (unknown.status, unknown.body["errors"][0]["code"]) == (422, "unknown_symbol")
        unserved = await client.post("/api/v1/jobs", {**JOB, "timeframe": "45m"})
        assert unserved.status == 422

        async def it_streams() -> bool:
            return await state(client) == "STREAM"

        await until(it_streams, "the session streams")
        shown = (await client.get(CONNECTOR)).body["session"]
        assert (shown["holder"], shown["fence"]) == ("ann", 1)
        assert shown["since"] > FIRST_MS
        figures = (await client.get("/metrics")).body
        assert 'collector_session_state{exchange="fxcm",state="STREAM"} 1.0' in figures
        assert 'collector_session_state{exchange="fxcm",state="IDLE"} 0.0' in figures
    # One login, and it was the worker's.
    assert fx.server.count("login") == 1


async def test_the_command_line_shows_the_session_and_has_bars_compared_by_a_worker(
    fx: FxcmCollecting, mongo_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    series, start = Series.of("fxcm", "EUR/USD", "1m"), FIRST_MS + 4 * DAY
    rows = [row[:6] for row in true_bars("EUR/USD", "m1", start, start + DAY)]
    fx.store.append_page(
        series, CandleBatch.of(rows), Interval(start, start + DAY), fence=1, known_at=1
    )
    for name, value in {
        "HOME": str(fx.root),
        "DATA": str(fx.root / "lake"),
        "MONGO_URI": mongo_uri,
        "MONGO_DB": fx.database.raw.name,
        "FXCM__USER": "trader",
        "EXCHANGE_URLS": json.dumps({"fxcm": fx.server.url}),
    }.items():
        monkeypatch.setenv(f"COLLECTOR_{name}", value)
    monkeypatch.chdir(fx.root)
    shown = (await run_here("connector", "show", "fxcm", "--json")).facts
    assert shown["session"]["state"] == "DISCONNECTED"
    line = "validate --exchange fxcm --symbols EUR/USD --tfs 1m --json"
    checked = await run_here(*line.split(), program=datalayer)
    assert "verify_source job" in checked.out + checked.err
    [compare] = await fx.queue.find({"type": "verify_source"})
    assert compare.state == "queued"
    line = "backfill --exchange fxcm --symbols EUR/USD --since 2024-03-05 --json"
    refused = await run_here(*line.split(), program=datalayer)
    assert refused.code != 0
    assert "a worker has to run first" in refused.out + refused.err
    assert not fx.server.count("login")
