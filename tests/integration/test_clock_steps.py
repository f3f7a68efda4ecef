"""The database's clock was set: what was planned, granted and leased by the other time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from bson import ObjectId

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.lateness import Margin
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.session_lease import SessionLeases
from collector.errors import RateLimited
from collector.jobs import settlement
from collector.jobs.job import JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.schedule import Every
from collector.jobs.sweep import sweep
from collector.jobs.turn import DutyTurn
from collector.mongo.remembered_time import MOVING_FOR_MS, RememberedTime
from collector.operations import connectors
from tests.support.aged_limiter import age_limiter
from tests.support.mongo_profile import profiled
from workers.clock_watch import ClockWatch, correct_dates

if TYPE_CHECKING:
    from collector.jobs.job import Job
    from collector.mongo.client import Database

HOUR_MS = 3_600_000
SECOND_MS = 1_000


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


@pytest.fixture
def registry(database: Database) -> ConnectorRegistry:
    return ConnectorRegistry(database)


def watch(database: Database) -> ClockWatch:
    return ClockWatch(database, lambda: None)


async def remember(database: Database, ahead_ms: int) -> None:
    """As a worker did while the clock was so far ahead."""
    await RememberedTime(database).look()
    await database.system.update_one(
        {"_id": "clock"}, [{"$set": {"latest_ms": {"$add": ["$latest_ms", ahead_ms]}}}]
    )


async def due_in(database: Database, job: Job) -> int:
    await database.read_server_clock()
    return (await JobQueue(database).get(job.id)).next_run_at - database.server_clock.now_ms()


# -- what jobs wait for -----------------------------------------------------------------------


async def test_jobs_that_were_planned_by_a_clock_ahead_come_when_it_is_put_right(
    database: Database, queue: JobQueue
) -> None:
    now = await database.now_ms()
    soon, _ = await queue.add(JobSpec("x", "a", first_run_ms=now + HOUR_MS + 30_000))
    late, _ = await queue.add(JobSpec("x", "b", first_run_ms=now + HOUR_MS - 30_000))
    await remember(database, HOUR_MS)
    await watch(database).look()
    assert 10_000 < await due_in(database, soon) <= 30_000
    assert await due_in(database, late) <= 0


async def test_one_of_many_workers_moves_the_schedules_and_once(
    database: Database, queue: JobQueue
) -> None:
    now = await database.now_ms()
    job, _ = await queue.add(JobSpec("x", "a", first_run_ms=now + 10 * HOUR_MS))
    await remember(database, HOUR_MS)
    watches = [watch(database) for _ in range(8)]
    await asyncio.gather(*(each.look() for each in watches for _ in range(3)))
    assert 8.9 * HOUR_MS < await due_in(database, job) <= 9 * HOUR_MS


async def test_a_worker_that_dies_while_it_moves_schedules_is_replaced(database: Database) -> None:
    remembered = RememberedTime(database)
    await remember(database, HOUR_MS)
    dead = await remembered.look()
    assert dead is not None
    assert await remembered.look() is None
    a_minute_ago = {"moving_until": {"$subtract": ["$moving_until", MOVING_FOR_MS + 1]}}
    await database.system.update_one({"_id": "clock"}, [{"$set": a_minute_ago}])
    heir = await remembered.look()
    assert heir is not None
    assert heir.by_ms == dead.by_ms
    await remembered.schedules_moved(dead)
    await remembered.schedules_moved(heir)
    assert await remembered.look() is None


@pytest.mark.parametrize("ahead_ms", [0, 1_500, -HOUR_MS])
async def test_a_clock_that_was_not_set_back_moves_nothing(
    database: Database, ahead_ms: int
) -> None:
    await remember(database, ahead_ms)
    for _ in range(3):
        assert await RememberedTime(database).look() is None


async def test_schedules_of_many_jobs_are_moved_in_short_statements_that_wake_nobody(
    database: Database, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "a", first_run_ms=await database.now_ms() + 2 * HOUR_MS))
    template = await database.jobs.find_one({"_id": job.id})
    assert template is not None
    await database.raw["jobs"].insert_many(
        {**template, "_id": ObjectId(), "unique_key": f"k{number}"} for number in range(2_500)
    )
    await remember(database, HOUR_MS)
    async with profiled(database) as statements:
        await watch(database).look()
    moved = [each["nModified"] for each in statements if each.get("nModified")]
    assert max(moved) <= 1_000
    assert sum(moved) == 2_501
    assert await database.jobs.count_documents({"wake": {"$ne": template.get("wake")}}) == 0


async def test_a_run_that_ends_by_a_worker_that_has_not_noticed_is_not_planned_an_hour_late(
    database: Database, queue: JobQueue
) -> None:
    """Schedules were moved already; nobody would move this one."""
    await queue.add(JobSpec("x", "a", schedule=Every(30_000)))
    await queue.add(JobSpec("x", "b"))
    ann = Leasing(database, "ann")
    regular, waiting = await ann.claim("x", 2)
    stale_ms = await database.now_ms() + HOUR_MS
    await ann.settle(regular, settlement.again(regular.job, stale_ms, 0.5))
    denied = RateLimited("x", 20_000, "window", retry_at_ms=stale_ms + 20_000)
    await ann.settle(waiting, settlement.wait_for_token(denied, 0.0))
    assert 25_000 < await due_in(database, regular.job) <= 30_000
    assert 15_000 < await due_in(database, waiting.job) <= 20_000


# -- leases, blocks and turns -----------------------------------------------------------------


async def test_a_job_whose_worker_died_while_the_clock_was_ahead_is_taken_over_within_a_lease(
    database: Database, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "a"))
    ann = Leasing(database, "ann")
    await ann.claim("x")
    ahead = {
        "lock.lock_until": {"$add": ["$lock.lock_until", HOUR_MS]},
        "next_run_at": {"$add": ["$next_run_at", HOUR_MS]},
    }
    await database.jobs.update_one({"_id": job.id}, [{"$set": ahead}])
    await correct_dates(database)
    held = await queue.get(job.id)
    assert held.next_run_at == held.document["lock"]["lock_until"]
    assert 0 < await due_in(database, job) <= ann.terms.ttl_ms


async def test_a_paused_job_whose_worker_died_while_the_clock_was_ahead_is_released(
    database: Database, queue: JobQueue
) -> None:
    job, _ = await queue.add(JobSpec("x", "a"))
    await Leasing(database, "ann").claim("x")
    await queue.pause(job.id)
    # Two hours ahead; its term is short, so that it is over when it was shortened.
    ahead = {"lock.lock_until": {"$add": ["$lock.lock_until", HOUR_MS]}, "lock.ttl_ms": -1}
    await database.jobs.update_one({"_id": job.id}, [{"$set": ahead}])
    assert await sweep(database) == 0
    await correct_dates(database)
    assert await sweep(database) == 1


async def test_a_living_workers_lease_is_left_alone(database: Database, queue: JobQueue) -> None:
    job, _ = await queue.add(JobSpec("x", "a"))
    ann = Leasing(database, "ann")
    (lease,) = await ann.claim("x")
    before = (await queue.get(job.id)).document
    await correct_dates(database)
    assert (await queue.get(job.id)).document == before
    await ann.settle(lease, settlement.done())


async def test_no_block_and_no_trip_reaches_further_than_its_term(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(100, 1_000))
    await registry.block("x", "418", for_ms=60_000)
    held = {"state": "TRIPPED", "tripped_until": await database.now_ms() + HOUR_MS + 60_000}
    ahead = {"blocked_until": {"$add": ["$blocked_until", HOUR_MS]}, "circuit": held}
    await database.connectors.update_one({"exchange_id": "x"}, [{"$set": ahead}])
    await correct_dates(database)
    document = (await registry.get("x")).document
    now = await database.now_ms()
    assert 50_000 < document["blocked_until"] - now <= 60_000
    assert 50_000 < document["circuit"]["tripped_until"] - now <= 60_000
    assert document.get("session") is None


async def test_a_pause_ends_at_the_date_that_the_operator_named(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(100, 1_000))
    until_ms = await database.now_ms() + 5 * HOUR_MS
    await registry.pause("x", until_ms=until_ms)
    await registry.block("x", "418", for_ms=1)
    ahead = {"blocked_until": {"$add": ["$blocked_until", HOUR_MS]}}
    await database.connectors.update_one({"exchange_id": "x"}, [{"$set": ahead}])
    await correct_dates(database)
    assert (await registry.get("x")).document["paused_until"] == until_ms


async def test_a_session_whose_worker_died_while_the_clock_was_ahead_is_free_in_its_term(
    database: Database, registry: ConnectorRegistry
) -> None:
    await connectors.ensure(database, "fxcm")
    leases = SessionLeases(database, "ann", SystemClock())
    assert await leases.take("fxcm") is not None
    ahead = {f"session.{name}": {"$add": [f"$session.{name}", HOUR_MS]} for name in UNTIL}
    await database.connectors.update_one({"exchange_id": "fxcm"}, [{"$set": ahead}])
    await correct_dates(database)
    session = (await registry.get("fxcm")).document["session"]
    now = await database.now_ms()
    assert 0 < session["lease_until"] - now <= leases.terms.ttl_ms
    assert 0 < session["free_at"] - now <= leases.terms.free_ms


UNTIL = ("lease_until", "free_at")


async def test_a_duty_goes_on_that_was_put_off_by_a_clock_ahead(database: Database) -> None:
    turn = DutyTurn(database, "duty")
    assert await turn.take()
    await turn.end({}, rest_ms=60_000)
    assert not await turn.take()
    ahead = {"due_at": {"$add": ["$due_at", HOUR_MS]}}
    await database.system.update_one({"_id": "turn:duty"}, [{"$set": ahead}])
    assert await turn.take()


# -- tokens -----------------------------------------------------------------------------------


async def test_a_claim_whose_answer_was_lost_is_no_step_of_the_clock(
    database: Database, queue: JobQueue
) -> None:
    """What is found after an outage was claimed some time ago."""
    job, _ = await queue.add(JobSpec("x", "a"))
    ann = Leasing(database, "ann")
    await ann.claim("x")
    long_ago = {"stats.last_run_at": {"$subtract": ["$stats.last_run_at", 12_000]}}
    await database.jobs.update_one({"_id": job.id}, [{"$set": long_ago}])
    before = database.server_clock.offset_ms
    assert [lease.job_id for lease in await ann.forgotten([])] == [job.id]
    await database.read_server_clock()
    assert abs(database.server_clock.offset_ms - before) < 1_000


async def test_after_a_step_ahead_what_was_counted_still_counts_and_no_more(
    database: Database, registry: ConnectorRegistry
) -> None:
    """As after a failover to a primary whose clock is ahead: the grants seem to be long ago."""
    await registry.ensure("x", Limits(10, 60_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 4)
        await step_ahead(database, limiter, HOUR_MS)
        assert await spend(limiter, 10) == 6
        assert (await registry.get("x")).usages(await database.now_ms())[0].used == 10


async def test_a_step_ahead_that_is_met_by_a_denial_is_known_at_the_next_grant(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(10, 60_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 4)
        await step_ahead(database, limiter, HOUR_MS)
        await registry.pause("x")
        assert await spend(limiter, 3) == 0
        await registry.resume("x")
        assert await spend(limiter, 10) == 6


async def test_a_step_ahead_that_another_part_of_the_process_noticed_counts_as_well(
    database: Database, registry: ConnectorRegistry
) -> None:
    """A worker whose first token comes after the step has nothing to compare it with."""
    await registry.ensure("x", Limits(10, 60_000))
    async with Limiter(database) as other:
        await spend(other, 4)
    await age_limiter(database, HOUR_MS)
    offset_ms, first_ms = database.server_clock.first_reading
    assert offset_ms is not None
    assert first_ms is not None
    database.server_clock.first_reading = offset_ms - HOUR_MS, first_ms - HOUR_MS
    async with Limiter(database) as limiter:
        assert await spend(limiter, 10) == 6


async def test_after_a_step_ahead_grants_are_as_old_as_they_were(
    database: Database, registry: ConnectorRegistry
) -> None:
    """Counted as of now, they would stop an exchange for its longest window."""
    await registry.ensure("x", Limits(10, 60_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 8)
        await age_limiter(database, 50_000)
        await step_ahead(database, limiter, HOUR_MS)
        assert await spend(limiter, 10) == 2
        await age_limiter(database, 12_000)
        assert await spend(limiter, 10) == 8


async def test_after_a_step_back_grants_are_as_old_as_they_were(
    database: Database, registry: ConnectorRegistry
) -> None:
    """Counted as of now, they would stop an exchange for its longest window, or for an hour."""
    await registry.ensure("x", Limits(10, 60_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 5)
        await age_limiter(database, 50_000)
        await spend(limiter, 5)
        await age_limiter(database, -HOUR_MS)
        assert await spend(limiter, 1) == 0
        await age_limiter(database, 12_000)
        assert await spend(limiter, 10) == 5


async def test_after_a_step_back_margins_are_measured_and_chosen_on(
    database: Database, registry: ConnectorRegistry
) -> None:
    """A choice that seems to be an hour younger than now would put off the next one as long."""
    await registry.ensure("x", Limits(10, 60_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 1)
        ahead_ms = await database.now_ms() + HOUR_MS
        counted, least = {"counts": [1]}, {"took_ms": 3.0, "token_ms": 1.0}
        ahead = {
            "lateness": {
                "chosen_at": ahead_ms,
                "histogram": {"since": ahead_ms, "now": counted, "before": None},
                "least": {"since": ahead_ms, "now": least, "before": None},
            },
            "limiter.windows.0.margin": Margin(20, 40, ahead_ms).to_document(),
        }
        await database.connectors.update_one({"exchange_id": "x"}, {"$set": ahead})
        await age_limiter(database, -HOUR_MS)
        await correct_dates(database)
        document = (await registry.get("x")).document
        now = await database.now_ms()
    lateness = document["lateness"]
    assert lateness["chosen_at"] <= now
    since = lateness["chosen_at"]
    assert lateness["histogram"] == {"since": since, "now": counted, "before": None}
    assert lateness["least"] == {"since": since, "now": least, "before": None}
    assert document["limiter"]["windows"][0]["margin"]["settles_at"] <= now + 60_040


async def test_a_ban_and_a_trip_last_as_long_as_they_would_have_without_a_step_ahead(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(10, 1_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 1)
        await registry.block("x", "418", for_ms=60_000)
        await step_ahead(database, limiter, HOUR_MS)
        assert await spend(limiter, 1) == 0
        blocked_until = (await registry.get("x")).document["blocked_until"]
        assert 50_000 < blocked_until - await database.now_ms() <= 60_000
        await registry.unblock("x")
        held = {"state": "TRIPPED", "tripped_until": await database.now_ms() + 60_000}
        await database.connectors.update_one({"exchange_id": "x"}, {"$set": {"circuit": held}})
        await step_ahead(database, limiter, HOUR_MS)
        assert await spend(limiter, 1) == 0


async def test_a_ban_that_was_over_before_a_step_ahead_stays_over(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(10, 1_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 1)
        await registry.block("x", "418", for_ms=-1)
        await step_ahead(database, limiter, HOUR_MS)
        assert await spend(limiter, 1) == 1


async def step_ahead(database: Database, limiter: Limiter, ms: int) -> None:
    """The server's clock is set ahead; what is stored looks older, and so does what we know."""
    await age_limiter(database, ms)
    dates = {"blocked_until": "$blocked_until", "circuit.tripped_until": "$circuit.tripped_until"}
    older = {name: {"$subtract": [date, ms]} for name, date in dates.items()}
    await database.connectors.update_one({"exchange_id": "x"}, [{"$set": older}])
    forget_hours(database, ms)
    lane = limiter._lane("x")
    assert lane._offset_ms is not None
    assert lane._seen_ms is not None
    lane._offset_ms -= ms
    lane._seen_ms -= ms


def forget_hours(database: Database, ms: int) -> None:
    """What this process knows of the server's clock is what it showed so long ago."""
    clock = database.server_clock
    clock._far._offset_ms = clock.offset_ms - ms
    clock._latest -= ms


async def test_a_window_that_was_hardly_used_stops_nobody_after_a_step_ahead(
    database: Database, registry: ConnectorRegistry
) -> None:
    await registry.ensure("x", Limits(1_000, 300_000))
    async with Limiter(database) as limiter:
        await spend(limiter, 1)
        for _ in range(3):
            await step_ahead(database, limiter, HOUR_MS)
            assert await spend(limiter, 5) == 5


async def spend(limiter: Limiter, count: int) -> int:
    """Asks for so many tokens, one after the other; how many came."""
    granted = 0
    for _ in range(count):
        try:
            await limiter.acquire("x")
        except RateLimited:
            continue
        granted += 1
    return granted
