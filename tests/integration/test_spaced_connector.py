"""A connector whose requests are spaced by series: what its tokens, its jobs and its report do."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.grant_window import Want
from collector.connectors.history_budget import history_budget
from collector.connectors.limiter import Limiter
from collector.connectors.permit import ConnectorPermit
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.durations import HOUR_MS
from collector.errors import DatabaseUnavailable, RateLimited
from collector.exchanges.port import Call
from collector.exchanges.quirks import Quirks, VenueWindow
from collector.exchanges.quirks.spacing import Spacing
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.lease_terms import LeaseTerms
from tests.support.until import until_job
from workers.handlers.registry import Done, HandlerRegistry, Outcome
from workers.runtime import Worker, WorkerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database
    from workers.job_run import JobRun

SPACING = Spacing({"1m": 30_000, "5m": 50}, frozenset({"XAUUSD:1m"}), threshold=0.4)
LIMITS = Limits(
    10,
    60_000,
    windows=(Window("requests", 100, HOUR_MS),),
    priority_reserve=2,
    spacing=SPACING,
)
QUIRKS = Quirks("x", VenueWindow("requests", 10, 60_000))


@pytest.fixture
async def registry(database: Database) -> ConnectorRegistry:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", LIMITS)
    return registry


@pytest.fixture
async def limiter(database: Database, registry: ConnectorRegistry) -> AsyncIterator[Limiter]:
    async with Limiter(database) as limiter:
        yield limiter


async def load(limiter: Limiter, count: int = 4) -> None:
    """Calls of other series, so that the budget is loaded."""
    for number in range(count):
        await limiter.acquire("x", key=f"FX{number}:1h")


async def denied(limiter: Limiter, key: str, **options: Any) -> RateLimited:
    with pytest.raises(RateLimited) as caught:
        await limiter.acquire("x", key=key, **options)
    return caught.value


async def test_spacing_is_kept_with_the_connector(registry: ConnectorRegistry) -> None:
    assert (await registry.get("x")).limits == LIMITS
    without = replace(LIMITS, spacing=None)
    connector, _ = await registry.ensure("y", without)
    assert connector.limits == without


async def test_below_the_threshold_nobody_keeps_a_distance(limiter: Limiter) -> None:
    for _ in range(4):
        await limiter.acquire("x", key="GBPUSD:1m")
    assert (await denied(limiter, "GBPUSD:1m")).reason == "min_interval"


async def test_a_loaded_budget_spaces_the_requests_of_one_series(
    limiter: Limiter, registry: ConnectorRegistry
) -> None:
    await load(limiter)
    await limiter.acquire("x", key="GBPUSD:1m")
    refused = await denied(limiter, "GBPUSD:1m")
    assert refused.reason == "min_interval"
    [entry] = (await registry.get("x")).document["limiter"]["spaced"]
    assert (entry["k"], refused.retry_at_ms) == ("GBPUSD:1m", entry["t"] + 30_000)
    await limiter.acquire("x", key="USDJPY:1m")
    await limiter.acquire("x", key="GBPUSD:1h")  # its timeframe has no interval


async def test_who_has_to_keep_a_distance_holds_up_nobody(limiter: Limiter) -> None:
    await load(limiter)
    await limiter.acquire("x", key="GBPUSD:1m")
    keys = ("GBPUSD:1m", "USDJPY:1m", "GBPUSD:1m", "AUDUSD:1m")
    ends = await asyncio.gather(
        *(limiter.acquire("x", key=key) for key in keys), return_exceptions=True
    )
    assert [isinstance(end, RateLimited) for end in ends] == [True, False, True, False]


async def test_a_short_distance_is_waited_for_in_place(limiter: Limiter) -> None:
    await load(limiter)
    for _ in range(3):
        await limiter.acquire("x", key="GBPUSD:5m", patience=10)


async def test_the_reserve_is_kept_for_series_that_go_first(limiter: Limiter) -> None:
    await load(limiter, 8)
    assert (await denied(limiter, "GBPUSD:1m")).reason == "priority_reserve"
    await limiter.acquire("x", key="XAUUSD:1m")
    assert (await denied(limiter, "GBPUSD:1m")).reason == "priority_reserve"
    await limiter.acquire("x", key="GBPUSD:1m", priority=True)  # a job may have priority as well
    assert (await denied(limiter, "XAUUSD:1m")).reason == "minute_quota"


async def test_series_that_go_first_keep_no_distance(limiter: Limiter) -> None:
    await load(limiter, 6)
    for _ in range(4):
        await limiter.acquire("x", key="XAUUSD:1m")


async def test_the_hour_that_is_spent_is_the_reason_before_the_minute(
    limiter: Limiter, registry: ConnectorRegistry
) -> None:
    await registry.change_limits("x", {"windows": [Window("requests", 10, HOUR_MS)]})
    for _ in range(10):
        await limiter.acquire("x", key="XAUUSD:1m")
    assert (await denied(limiter, "XAUUSD:1m")).reason == "hour_quota"


async def test_a_full_budget_is_no_reason_to_leave_series_that_go_first_unclaimed(
    limiter: Limiter, registry: ConnectorRegistry
) -> None:
    """What the worker goes by when it looks for jobs: only a budget that nobody can use."""
    await load(limiter, 8)
    assert (await denied(limiter, "GBPUSD:1m")).reason == "priority_reserve"
    assert limiter.exhausted_until("x") == 0.0
    await load(limiter, 0)
    for _ in range(2):
        await limiter.acquire("x", key="XAUUSD:1m")
    await denied(limiter, "GBPUSD:1m")
    assert limiter.exhausted_until("x") > 0.0


async def test_a_clock_that_was_set_back_keeps_no_series_waiting_for_longer_than_its_interval(
    database: Database, limiter: Limiter, registry: ConnectorRegistry
) -> None:
    await load(limiter)
    await limiter.acquire("x", key="GBPUSD:1m")
    ahead = await database.now_ms() + 3_600_000
    fields = {"limiter.clock": ahead, "limiter.spaced.0.t": ahead}
    await database.raw["connectors"].update_one({"exchange_id": "x"}, {"$set": fields})
    await registry.correct_dates()
    connector, now_ms = await registry.get("x"), await database.now_ms()
    assert connector.denial(Want(key="GBPUSD:1m"), now_ms).retry_at_ms <= now_ms + 30_000


async def test_a_clock_that_was_set_back_does_not_forget_what_went_first(
    database: Database, limiter: Limiter, registry: ConnectorRegistry
) -> None:
    await limiter.acquire("x", key="XAUUSD:1m")
    ahead = await database.now_ms() + HOUR_MS
    before = (await registry.get("x")).document["limiter"]["windows"]
    bins = [[{"t": ahead, "n": each["cur"], "p": each["pcur"]}] for each in before]
    emptied = {
        f"limiter.windows.{at}.{name}": value
        for at, each in enumerate(bins)
        for name, value in (("bins", each), ("cur", 0), ("pcur", 0), ("t", ahead))
    }
    await database.raw["connectors"].update_one(
        {"exchange_id": "x"}, {"$set": {"limiter.clock": ahead, **emptied}}
    )
    await registry.correct_dates()
    usages = (await registry.get("x")).usages(await database.now_ms())
    assert [(use.used, use.by_priority) for use in usages] == [(1, 1), (1, 1)]


async def test_a_refused_poll_is_logged_counted_and_reported(
    database: Database,
    limiter: Limiter,
    registry: ConnectorRegistry,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="collector.x.history")
    permit = ConnectorPermit(limiter, registry, QUIRKS, patience=0)
    await load(limiter, 10 - 2)
    for key in ("TSLA.US:1m", "TSLA.US:1m", "GBPUSD:1m"):
        with pytest.raises(RateLimited):
            await permit.before(Call("x", "history", key=key))
    said = [record.getMessage().partition(" wait=")[0] for record in caplog.records]
    assert said == [
        "History quota guard triggered symbol=TSLA.US tf=1m reason=priority_reserve",
        "X history throttle (priority_reserve) symbol=TSLA.US tf=1m",
        "History quota guard triggered symbol=GBPUSD tf=1m reason=priority_reserve",
        "X history throttle (priority_reserve) symbol=GBPUSD tf=1m",
    ]
    shown = history_budget(await registry.get("x"), await database.now_ms())
    assert shown is not None
    assert (shown["calls_60s"], shown["last_denied_reason"]) == (8, "priority_reserve")
    assert shown["throttle_state"] == "ok"
    assert shown["skipped_polls"][0] == {
        "symbol": "TSLA.US",
        "tf": "1m",
        "count": 2,
        "last_reason": "priority_reserve",
        "by_reason": {"priority_reserve": 2},
    }
    for _ in range(2):
        await permit.before(Call("x", "history", key="XAUUSD:1m"))
    with pytest.raises(RateLimited):
        await permit.before(Call("x", "history", key="XAUUSD:1m"))
    shown = history_budget(await registry.get("x"), await database.now_ms())
    assert shown is not None
    assert (shown["throttle_state"], shown["next_slot_seconds"] > 0) == ("critical", True)
    assert shown["priority"]["calls_60s"] == 2


async def test_a_refused_poll_that_cannot_be_counted_is_refused_all_the_same(
    limiter: Limiter, registry: ConnectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(*_: Any, **__: Any) -> None:
        raise DatabaseUnavailable("no primary")

    monkeypatch.setattr(registry, "register_skip", unreachable)
    permit = ConnectorPermit(limiter, registry, QUIRKS, patience=0)
    await load(limiter, 8)
    with pytest.raises(RateLimited):
        await permit.before(Call("x", "history", key="GBPUSD:1m"))


async def test_a_pause_is_no_skipped_poll(limiter: Limiter, registry: ConnectorRegistry) -> None:
    permit = ConnectorPermit(limiter, registry, QUIRKS, patience=0)
    await registry.pause("x")
    with pytest.raises(RateLimited):
        await permit.before(Call("x", "history", key="GBPUSD:1m"))
    assert "budget" not in (await registry.get("x")).document


async def test_a_job_that_has_to_keep_its_distance_comes_back_without_spending_an_attempt(
    database: Database, limiter: Limiter, registry: ConnectorRegistry
) -> None:
    permit = ConnectorPermit(limiter, registry, QUIRKS, patience=0)
    asked = 0

    async def poll(run: JobRun) -> Outcome:
        nonlocal asked
        asked += 1
        await permit.before(Call("x", "history", key="GBPUSD:1m"))
        return Done()

    await load(limiter)
    await limiter.acquire("x", key="GBPUSD:1m")
    [entry] = (await registry.get("x")).document["limiter"]["spaced"]
    queue = JobQueue(database)
    job, _ = await queue.add(JobSpec("x", "poll", symbol="GBP/USD", timeframe="1m"))
    config = WorkerConfig("ann", poll_seconds=60, patience=0)
    async with Limiter(database) as own:
        worker = Worker(database, own, HandlerRegistry({"poll": poll}), config, terms=LeaseTerms())
        task = asyncio.create_task(worker.run())
        try:
            waiting = await until_job(queue, job, lambda job: job.state is State.WAITING)
        finally:
            worker.drain()
            await task
    assert (asked, waiting.attempt) == (1, 0)
    assert waiting.document["waiting_for"] == "min_interval"
    assert waiting.document["stats"]["fail"] == 0
    # It may come a moment early, to be leased by then.
    assert entry["t"] + 30_000 - 2_000 <= waiting.document["next_run_at"] <= entry["t"] + 30_100
