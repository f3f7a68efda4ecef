"""What an operator sees when something is wrong, and that the command in the table helps.

The rows of docs/operations.md that no other test tries. The processes are started once for all of
them, and every test leaves no job behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.mongo.client import Database
from migrations import runner
from tests.acceptance.operator_desk import WorkingDesk, desk_at
from tests.support.databases import new_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FORTY = [f"SIM{number:05d}/USDT" for number in range(1, 41)]
QUICK_CIRCUIT = ("--circuit", "circuit_min_closed_sec=1", "--circuit", "circuit_half_open_probe=1")


@pytest.fixture(scope="module")
async def running(
    mongo_uri: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WorkingDesk]:
    name = new_name()
    async with Database(mongo_uri, name) as database:
        await database.read_server_clock()
        await runner.up(database)
        async with desk_at(mongo_uri, name, tmp_path_factory.mktemp("desk")).working() as desk:
            await desk.asked("connector", "add", "simulated")
            yield desk
        await database.raw.client.drop_database(name)


@pytest.fixture
async def desk(running: WorkingDesk) -> AsyncIterator[WorkingDesk]:
    yield running
    await running.asked("job", "remove", "--type", "ohlcv_incremental", "--type", "ohlcv_backfill")


async def collect(desk: WorkingDesk, *symbols: str, since: str = "2h") -> dict[str, str]:
    """Adds these series; the ids of the last one's jobs by type."""
    added = await desk.asked("add", "simulated", *symbols, "--timeframes", "1m", "--since", since)
    return {job["type"]: job["id"] for job in added["created"]}


async def all_have_run(desk: WorkingDesk) -> None:
    async def each_once() -> bool:
        jobs = (await desk.rest.get("/api/v1/jobs", type="ohlcv_incremental")).body["items"]
        return all(job["stats"]["success"] for job in jobs)

    await desk.until(each_once, "every series was fetched once")


async def test_forty_series_of_an_exchange_that_is_down_are_one_trouble(desk: WorkingDesk) -> None:
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
    await desk.sees_no_trouble()


async def test_a_ban_is_named_and_lifted_on_the_operators_word(desk: WorkingDesk) -> None:
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
    desk: WorkingDesk,
) -> None:
    jobs = await collect(desk, "ETH/USDT")
    job = jobs["ohlcv_incremental"]
    await desk.succeeds(job)
    await desk.succeeds(jobs["ohlcv_backfill"])
    await desk.listing("delist", "ETH/USDT")
    await desk.asked("job", "run", job)
    trouble = await desk.sees("failed", jobs=1)
    assert "Invalid symbol" in trouble["reason"]
    assert trouble["help"] == f"mend the cause, then collector job run {job}"
    listed = (await desk.verb("job", "list", "--state", "failed")).out
    assert job in listed
    assert "Invalid symbol" in listed
    await desk.listing("relist", "ETH/USDT")
    await desk.asked("job", "run", job)
    await desk.sees_no_trouble()
    await desk.succeeds(job, 2)


async def test_all_failed_jobs_run_again_by_one_command(desk: WorkingDesk) -> None:
    several = FORTY[:5]
    await collect(desk, *several)
    await all_have_run(desk)
    await desk.listing("delist", *several)
    await desk.asked("job", "run", "--exchange", "simulated", "--type", "ohlcv_incremental")
    trouble = await desk.sees("failed", jobs=len(several))
    assert trouble["help"] == "collector job list --exchange simulated --state failed"
    await desk.listing("relist", *several)
    run = await desk.asked("job", "run", "--exchange", "simulated", "--state", "failed")
    assert run["changed"] == len(several)
    await desk.sees_no_trouble()


async def test_a_wrong_clock_of_an_exchange_is_seen_and_over_when_it_is_right(
    desk: WorkingDesk,
) -> None:
    await desk.exchange_goes()
    await desk.exchange_comes("--offset-ms", "5000")
    job = (await collect(desk, "SOL/USDT"))["ohlcv_incremental"]

    async def drifts() -> bool:
        # A run reports what the answers of the runs before it showed.
        await desk.rest.post(f"/api/v1/jobs/{job}/run")
        return "clock_drift" in await desk.troubles()

    await desk.until(drifts, "the drift is a trouble")
    assert "timedatectl" in (await desk.sees("clock_drift"))["help"]
    told = await desk.verb("doctor")
    assert "simulated's clock is" in told.out
    await desk.exchange_goes()
    await desk.exchange_comes()

    async def agrees() -> bool:
        await desk.rest.post(f"/api/v1/jobs/{job}/run")
        return not await desk.troubles()

    await desk.until(agrees, "the drift is over")
