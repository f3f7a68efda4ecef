"""Troubles as a real database shows them."""

from __future__ import annotations

from contextlib import suppress
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from rich.live import Live

from api import trouble_watch
from collector.backoff import Backoff
from collector.cli.up_screen import STARTING_SECONDS, UpScreen
from collector.clock import ManualClock
from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import CollectorError, DatabaseUnavailable
from collector.jobs import settlement
from collector.jobs.counting import JobCounting
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.queue import JobQueue
from collector.operations.trouble_facts import troubles_now
from collector.operations.troubles import TroubleKind
from collector.progress import console
from collector.simulated.faults.catalogue import parse_faults
from tests.integration.circuit_desk import circuit_of, desk, make, venue
from tests.integration.test_api_events import listening, next_event
from tests.support.local_api import serving
from tests.support.local_collector import collecting
from tests.support.mongo_profile import profiled
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    import aiohttp

    from collector.jobs.settlement import Settlement
    from collector.mongo.client import Database
    from collector.operations.troubles import Trouble

MINUTE = 60_000
BACKOFF = Backoff(base_seconds=0, max_seconds=0, jitter=0)


async def found(database: Database) -> dict[str, Trouble]:
    counts = await JobCounting(database).count()
    return {each.kind.value: each for each in await troubles_now(database, counts)}


@pytest.fixture
async def worked(database: Database) -> Database:
    """A database with a live worker and a connector."""
    await LiveWorkers(database).be_seen("ann", {"host": "here", "pid": 1})
    await ConnectorRegistry(database).ensure("simulated", Limits(100_000, 1_000))
    return database


async def job(database: Database, symbol: str = "A/B", **fields: Any) -> JobSpec:
    spec = JobSpec("simulated", "count", symbol=symbol, **fields)
    await JobQueue(database).add(spec)
    return spec


async def ended(database: Database, end: Settlement) -> None:
    """A worker runs the job that is due, and its run ends so."""
    leasing = Leasing(database, "ann")
    [lease] = await leasing.claim("simulated")
    await leasing.settle(lease, end)


async def test_a_seldom_asked_exchange_that_does_not_answer_is_a_trouble(
    database: Database, mongo_uri: str
) -> None:
    await make(database, CircuitSettings())
    await LiveWorkers(database).be_seen("ann", {"host": "here", "pid": 1})
    await job(database)
    async with venue() as exchange:
        exchange.faults.add(*parse_faults({"kind": "server_error", "status": 503, "count": 3}))
        async with desk(mongo_uri, database.raw.name, exchange.url) as one:
            for tries in range(1, 4):
                with suppress(CollectorError):
                    await one.ask()
                expected = tries

                async def counted(expected: int = expected) -> bool:
                    failing = (await circuit_of(database)).get("failing") or {}
                    return bool(failing.get("count") == expected)

                await until(counted, "the failure is counted")
                assert ("unreachable" in await found(database)) == (tries == 3)
            gate = (await circuit_of(database))["state"]
            assert gate == "OPEN"
            trouble = (await found(database))["unreachable"]
            assert (trouble.exchange_id, trouble.jobs) == ("simulated", 1)
            assert "503" in trouble.reason
            await one.ask()

            async def over() -> bool:
                return (await circuit_of(database))["failing"] is None

            await until(over, "a success ends it")
            assert await found(database) == {}


async def test_a_worker_that_cannot_reach_its_exchange_reports_why(
    database: Database, tmp_path: Path
) -> None:
    faults = parse_faults({"kind": "server_error", "status": 502})
    async with collecting(database, tmp_path, faults=tuple(faults)) as c:
        await c.job("ohlcv_incremental", cursor=Cursor(since_ms=c.first_ms))

        async def seen() -> Trouble | None:
            return (await found(database)).get("unreachable")

        trouble = await until(seen, "the trouble is reported")
        assert trouble is not None
        assert "502" in trouble.reason
        assert trouble.jobs >= 1
        assert trouble.since_ms is not None


async def test_a_job_is_reported_from_its_third_failure_in_a_row(worked: Database) -> None:
    await job(worked)
    for attempt in (1, 2, 3):
        assert "retrying" not in await found(worked)
        failed = settlement.retry(attempt, "it broke", BACKOFF, 0.0, code="unexpected")
        await ended(worked, failed)
    trouble = (await found(worked))["retrying"]
    assert (trouble.reason, trouble.jobs) == ("it broke", 1)
    [stored] = await JobQueue(worked).find(limit=1)
    assert trouble.help == f"collector job show {stored.id}"
    assert stored.document["stats"]["failing_since"] == trouble.since_ms
    await ended(worked, settlement.again(stored, worked.server_clock.now_ms(), 0.0))
    assert await found(worked) == {}
    [stored] = await JobQueue(worked).find(limit=1)
    assert stored.document["stats"]["failing_since"] is None


async def test_failed_jobs_are_grouped_by_what_failed(worked: Database) -> None:
    for symbol in ("A/B", "C/D", "E/F"):
        await job(worked, symbol)
    [first] = await Leasing(worked, "ann").claim("simulated")
    await Leasing(worked, "ann").settle(
        first, settlement.fail(first.job, "may trade", "key_refused")
    )
    for _ in range(2):
        [lease] = await Leasing(worked, "ann").claim("simulated")
        end = settlement.fail(lease.job, "no such market", "bad_request")
        await Leasing(worked, "ann").settle(lease, end)
    troubles = await found(worked)
    assert {name: each.jobs for name, each in troubles.items()} == {"key_refused": 1, "failed": 2}
    assert troubles["failed"].reason == "no such market"


async def test_no_worker_is_a_trouble_once_there_is_work(database: Database) -> None:
    assert await found(database) == {}
    await job(database)
    assert (await found(database))["no_worker"].jobs == 1


async def test_jobs_that_are_due_for_long_are_overdue_and_those_due_now_are_not(
    worked: Database,
) -> None:
    await job(worked)
    assert await found(worked) == {}
    due_ms = await worked.now_ms() - 10 * MINUTE
    await worked.jobs.update_many({}, {"$set": {"next_run_at": due_ms}})
    trouble = (await found(worked))["overdue"]
    assert (trouble.since_ms, trouble.jobs) == (due_ms, 1)


async def test_series_that_fall_behind_are_stale(worked: Database) -> None:
    now_ms = await worked.now_ms()
    reached = {"A/B": now_ms - 60 * MINUTE, "C/D": now_ms - 2 * MINUTE}
    for symbol, since_ms in reached.items():
        cursor = Cursor(since_ms=since_ms - since_ms % MINUTE)
        spec = JobSpec("simulated", "ohlcv_incremental", symbol, "1m", cursor=cursor)
        await JobQueue(worked).add(spec)
    trouble = (await found(worked))["stale"]
    assert trouble.jobs == 1
    assert trouble.since_ms == reached["A/B"] - reached["A/B"] % MINUTE + MINUTE


async def test_facts_are_read_by_index_alone(worked: Database) -> None:
    for number in range(30):
        await job(worked, f"A{number}/B")
    async with profiled(worked) as statements:
        await troubles_now(worked)
    assert statements
    assert not [each for each in statements if "COLLSCAN" in each.get("planSummary", "")]


async def test_without_mongodb_that_is_the_trouble(
    worked: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_args: Any, **_options: Any) -> Any:
        raise DatabaseUnavailable("MongoDB cannot be reached")

    monkeypatch.setattr(worked.workers, "find", lost)
    [trouble] = await troubles_now(worked)
    assert (trouble.kind, trouble.jobs) == (TroubleKind.MONGODB, 0)


async def next_trouble(response: aiohttp.ClientResponse) -> Any:
    name, data = await next_event(response)
    while name != "trouble":
        name, data = await next_event(response)
    return data


async def test_troubles_are_an_event_when_they_change(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trouble_watch, "LOOK_SECONDS", 0.05)
    await job(database)
    events = "/api/v1/events"
    async with serving(database, tmp_path) as client, client.session.get(events) as response:
        await listening(response)
        begun = await next_trouble(response)
        assert [each["kind"] for each in begun["items"]] == ["no_worker"]
        assert begun["items"] == (await client.get("/api/v1/troubles")).body["items"]
        await LiveWorkers(database).be_seen("ann", {"host": "here", "pid": 1})
        assert (await next_trouble(response))["items"] == []


async def test_up_does_not_miss_its_workers_before_they_had_time_to_start(
    worked: Database,
) -> None:
    await job(worked)
    await JobCounting(worked).take_turn()
    await worked.workers.delete_many({})
    said: list[str] = []
    clock = ManualClock()
    screen = UpScreen(worked, Console(file=StringIO()), said.append, clock)
    await screen.print_lines()
    assert not [line for line in said if "no worker" in line]
    clock.advance(STARTING_SECONDS)
    await screen.print_lines()
    assert [line for line in said if line.startswith("! no worker")]


async def test_up_shows_an_exchanges_words_as_text(
    worked: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    await job(worked)
    await JobCounting(worked).take_turn()
    answer = "GET [/api/v3/klines] \x1b[2J"
    failing = {"count": 5, "since": worked.server_clock.now_ms(), "reason": answer}
    await worked.connectors.update_one({}, {"$set": {"circuit.failing": failing}})
    with Live(console=console(), auto_refresh=False) as live:
        await UpScreen(worked, console(), print)._draw(live)
    out = capsys.readouterr().out
    assert "GET [/api/v3/klines]" in out
    assert "\x1b" not in out


async def test_up_in_a_pipe_reports_what_begins_and_what_is_over(worked: Database) -> None:
    await job(worked)
    await JobCounting(worked).take_turn()
    said: list[str] = []
    screen = UpScreen(worked, Console(file=StringIO()), said.append)
    await screen.print_lines()
    assert not [line for line in said if line.startswith("! ")]
    failing = {"count": 5, "since": worked.server_clock.now_ms(), "reason": "no route"}
    await worked.connectors.update_one({}, {"$set": {"circuit.failing": failing}})
    screen = UpScreen(worked, Console(file=StringIO()), said.append)
    await screen.print_lines()
    assert [line for line in said if "! simulated: unreachable" in line and "no route" in line]
    assert said[-1].endswith("! simulated: unreachable")
