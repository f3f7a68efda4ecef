"""A scrape of a whole fleet: every name of the contract is there, and nothing is counted twice."""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from collector.connectors.connector import Limits
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.states import State
from collector.market.series import Series
from collector.store.store import Store
from tests.support.fleet import DAY, fleet
from tests.support.monitoring import every_query, labels_in, metrics_in, names_of
from tests.support.processes import program
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT")
FROM_THE_DATABASE = frozenset(
    {
        "collector_rate_limit_usage",
        "collector_rate_limit_limit",
        "collector_rate_limit_reset_at",
        "collector_jobs",
        "collector_lag_bars",
        "collector_unconfirmed_series",
        "collector_banned_until",
        "circuit_state",
        "circuit_err_rate_window",
    }
)
FROM_EACH_WORKER = frozenset(
    {
        "collector_rate_limit_saturated_total",
        "collector_requests_total",
        "collector_request_seconds_count",
        "collector_bars_written_total",
        "collector_lease_lost_total",
    }
)
WHEN_IT_HAPPENS = frozenset(
    {
        "circuit_transitions",
        "collector_gap_ratio",
        "fxcm_backoff_events",
        "fxcm_backoff_sleep_seconds",
    }
)
"""Families without a sample before a transition, a look for gaps, or FXCM itself."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one process told."""

    sums: dict[str, float]
    """Each sample's name with its sum over all labels."""
    families: frozenset[str]
    """Every metric it has, with and without samples."""
    names: frozenset[str]
    """What queries may call them by."""
    labels: dict[str, set[str]]
    """The labels of each sample's name."""


async def test_two_workers_and_an_api_scraped_together(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    tight = Limits(60, 5_000)
    async with (
        fleet(database, mongo_uri, tmp_path, limits=tight) as group,
        AsyncExitStack() as stack,
    ):
        jobs = [await group.backfill(symbol, days=30) for symbol in SYMBOLS]
        newest = Cursor(since_ms=group.first_ms + 39 * DAY)
        await group.queue.add(
            JobSpec("simulated", "ohlcv_incremental", SYMBOLS[0], "1m", cursor=newest)
        )
        for _ in range(2):
            await stack.enter_async_context(group.worker("workers", "--concurrency", "2"))
        api = await stack.enter_async_context(program("api", "--port", "0", **group.environment))
        address = (await api.line()).split()[-1]
        for job in jobs:
            await group.finished(job)

        await group.registry.pause("simulated")

        async def quiet() -> bool:
            running = await group.queue.find({"state": State.RUNNING.value})
            return not running and len(await targets(address)) == 2

        await until(quiet, "two workers to scrape, and nothing under way")
        workers = [await scraped(f"http://{target}/metrics") for target in await targets(address)]
        own = await scraped(f"{address}/metrics")

        for one in workers:
            told = one.sums.keys()
            assert told >= FROM_EACH_WORKER - {"collector_rate_limit_saturated_total"}
            assert one.families >= WHEN_IT_HAPPENS
            assert not told & FROM_THE_DATABASE, "a fact of the database, told by a worker"
        assert own.sums.keys() >= FROM_THE_DATABASE, FROM_THE_DATABASE - own.sums.keys()
        together = {
            name: sum(one.sums.get(name, 0) for one in workers) for name in FROM_EACH_WORKER
        }
        assert together["collector_rate_limit_saturated_total"] > 0
        check_queries([own, *workers])
        # No request and no bar is told by two processes, and none by nobody.
        assert together["collector_requests_total"] == len(group.exchange.journal.since())
        stored = sum(bars_of(Store(tmp_path), symbol) for symbol in SYMBOLS)
        assert together["collector_bars_written_total"] >= stored


async def targets(address: str) -> list[str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{address}/api/v1/workers/targets") as answer,
    ):
        return [target for entry in await answer.json() for target in entry["targets"]]


async def scraped(url: str) -> Scrape:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        families = list(text_string_to_metric_families(await answer.text()))
    sums: dict[str, float] = Counter()
    labels: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            sums[sample.name] += sample.value
            labels.setdefault(sample.name, set()).update(sample.labels)
    names = frozenset(name for family in families for name in names_of(family))
    return Scrape(sums, frozenset(family.name for family in families), names, labels)


def check_queries(scrapes: list[Scrape]) -> None:
    """Dashboard, alerts and autoscaler ask for what these processes have, by labels they have."""
    there = frozenset().union(*(each.names for each in scrapes))
    assert metrics_in(every_query()) - there == set()
    for name, asked in labels_in(every_query()).items():
        told = set().union(*(each.labels.get(name, set()) for each in scrapes))
        assert not told or asked <= told, name


def bars_of(store: Store, symbol: str) -> int:
    return sum(each.bars for each in store.coverage(Series.of("simulated", symbol, "1m")))
