"""What an operator sees when something is wrong, and that the command in the table helps.

The rows of docs/operations.md that no other test tries. The processes are started once for all of
them, and every test leaves no job behind.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from collector.mongo.client import Database
from collector.simulated.windows import max_in_window
from migrations import runner
from tests.acceptance.operator_desk import Desk, desk_at
from tests.support.databases import new_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FORTY = [f"SIM{number:05d}/USDT" for number in range(1, 41)]
FIVE = [f"SIM{number:05d}/USDT" for number in range(41, 46)]
QUICK_CIRCUIT = ("--circuit", "circuit_min_closed_sec=1", "--circuit", "circuit_half_open_probe=1")


@pytest.fixture(scope="module")
async def running(mongo_uri: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    name = new_name()
    async with Database(mongo_uri, name) as database:
        await database.read_server_clock()
        await runner.up(database)
        async with desk_at(mongo_uri, name, tmp_path_factory.mktemp("desk")).working() as desk:
            await desk.asked("connector", "add", "simulated")
            yield desk
        await database.raw.client.drop_database(name)


@pytest.fixture
async def desk(running: Desk) -> AsyncIterator[Desk]:
    yield running
    await running.asked("job", "remove", "--type", "ohlcv_incremental", "--type", "ohlcv_backfill")


async def collect(desk: Desk, *symbols: str, since: str = "2h") -> dict[str, str]:
    """Adds these series; the ids of the last one's jobs by type."""
    added = await desk.asked("add", "simulated", *symbols, "--timeframes", "1m", "--since", since)
    return {job["type"]: job["id"] for job in added["created"]}


async def test_forty_series_of_an_exchange_that_is_down_are_one_trouble(desk: Desk) -> None:
    await desk.asked("connector", "set", "simulated", *QUICK_CIRCUIT)
    await collect(desk, *FORTY)
    await desk.exchange_goes()
    trouble = await desk.sees("unreachable")
    assert trouble["jobs"] >= len(FORTY)
    assert trouble["help"] == "collector connector show simulated"

    async def tripped() -> bool:
        shown = await desk.asked("connector", "show", "simulated")
        return bool(shown["circuit"]["state"] == "TRIPPED")

    await desk.until(tripped, "the circuit gate trips")
    await desk.exchange_comes()
    # They would by themselves, after their pauses.
    await desk.asked("job", "run", "--exchange", "simulated", "--type", "ohlcv_backfill")
    await desk.sees_no_trouble()


async def test_a_ban_is_named_and_lifted_on_the_operators_word(desk: Desk) -> None:
    await desk.exchange_has({"kind": "too_many_requests", "retry_after_s": 3600})
    job = (await collect(desk, "BTC/USDT"))["ohlcv_incremental"]
    trouble = await desk.sees("blocked")
    assert "collector connector unblock simulated" in trouble["help"]
    shown = await desk.asked("connector", "show", "simulated")
    assert shown["stopped"]["reason"] == "blocked"
    await desk.exchange_has()
    await desk.asked("connector", "unblock", "simulated")
    await desk.sees_no_trouble()
    await desk.succeeds(job)


async def test_one_failed_job_is_named_and_runs_again_when_the_cause_is_mended(
    desk: Desk,
) -> None:
    await desk.listing("delist", "ETH/USDT")
    series = ("--symbol", "ETH/USDT", "--timeframe", "1m", "--since", "2h")
    added = await desk.asked("job", "add", "simulated", "ohlcv_backfill", *series)
    job = added["job"]["id"]
    trouble = await desk.sees("failed", jobs=1)
    assert "Invalid symbol" in trouble["reason"]
    assert trouble["help"] == f"mend the cause, then collector job run {job}"
    listed = (await desk.verb("job", "list", "--state", "failed")).out
    assert job in listed
    assert "Invalid symbol" in listed
    await desk.listing("relist", "ETH/USDT")
    await desk.asked("job", "run", job)
    await desk.sees_no_trouble()
    await desk.succeeds(job)


async def test_all_failed_jobs_run_again_by_one_command(desk: Desk) -> None:
    await desk.listing("delist", *FIVE)
    await collect(desk, *FIVE)
    trouble = await desk.sees("failed", jobs=len(FIVE))
    assert trouble["help"] == "collector job list --exchange simulated --state failed"
    await desk.listing("relist", *FIVE)
    run = await desk.asked("job", "run", "--exchange", "simulated", "--state", "failed")
    assert run["changed"] >= len(FIVE)
    await desk.sees_no_trouble()


async def test_a_wrong_clock_of_an_exchange_is_seen_and_over_when_it_is_right(
    desk: Desk,
) -> None:
    await desk.exchange_goes()
    await desk.exchange_comes("--offset-ms", "5000")
    job = (await collect(desk, "SOL/USDT", since="2h"))["ohlcv_backfill"]
    await desk.succeeds(job)
    # A run reports what the answers of the runs before it showed.
    await desk.asked("job", "run", "--exchange", "simulated", "--type", "markets_refresh")
    assert "timedatectl" in (await desk.sees("clock_drift"))["help"]
    assert "ahead of MongoDB's" in (await desk.verb("doctor")).out
    await desk.exchange_goes()
    await desk.exchange_comes()
    await collect(desk, "SOL/USDT", since="4h")
    await desk.succeeds(job, 2)
    await desk.asked("job", "run", "--exchange", "simulated", "--type", "markets_refresh")
    await desk.sees_no_trouble()


async def test_earlier_history_is_fetched_and_nothing_twice(desk: Desk) -> None:
    job = (await collect(desk, "XRP/USDT", since="2h"))["ohlcv_backfill"]
    await desk.succeeds(job)
    stored = (await desk.job(job))["progress"]
    asked_before = len(await desk.requests())
    added = await desk.asked("add", "simulated", "XRP/USDT", "--timeframes", "1m", "--since", "1d")
    assert job in {each["id"] for each in added["existing"]}
    await desk.succeeds(job, 2)
    assert (await desk.job(job))["progress"]["from_ms"] < stored["from_ms"]
    new = (await desk.requests())[asked_before:]
    starts = [each["start_ms"] for each in new if each["symbol"] == "XRPUSDT"]
    assert min(starts) < stored["from_ms"]
    assert not [at for at in starts if stored["from_ms"] <= at < stored["until_ms"]]


async def test_a_second_worker_shares_the_work_and_a_drained_one_gives_it_back(
    desk: Desk,
) -> None:
    async with desk.worker() as second:
        await desk.until(lambda: second.lines("worker_started"), "the second worker has begun")
        name = second.lines("worker_started")[0]["worker"]

        async def are_seen() -> bool:
            return len((await desk.asked("status"))["workers"]) == 2

        await desk.until(are_seen, "both workers are seen")
        await collect(desk, *FORTY, since="5d")

        async def took_one() -> bool:
            running = (await desk.rest.get("/api/v1/jobs", state="running")).body["items"]
            return name in {job["lock"]["locked_by"] for job in running}

        await desk.until(took_one, "the second worker has a job")
        second.signal(signal.SIGTERM)
        assert await second.ended() == 0
    assert len((await desk.asked("status"))["workers"]) == 1
    await desk.sees_no_trouble()


async def test_lower_limits_act_on_the_next_request(desk: Desk) -> None:
    await desk.asked("connector", "set", "simulated", "--rate-limit", "5", "--period", "1s")
    shown = await desk.asked("connector", "show", "simulated")
    assert (shown["rate_limit"], shown["rate_limit_period_ms"]) == (5, 1000)
    job = (await collect(desk, "LINK/USDT", since="8d"))["ohlcv_backfill"]
    await desk.succeeds(job)
    symbols = [entry["symbol"] for entry in await desk.requests()]
    # Requests of removed jobs may come until now, with tokens of before.
    from_now = symbols.index("LINKUSDT")
    times = [entry["at_ms"] for entry in (await desk.requests())[from_now:]]
    assert len(times) > 10
    assert max_in_window(times, 1000) <= 5
