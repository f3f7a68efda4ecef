"""The viewer's source: a fleet seen over REST and server-sent events alone."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from api.app import Door
from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import ApiRefused
from collector.jobs.job import JobSpec
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.queue import JobQueue
from collector.keys import ApiKeys
from collector.streams.live_board import LiveBoard
from collector.streams.publisher import HeartbeatMessage, PriceSnapshot, SnapPrice
from collector.tui.app import Viewer
from collector.tui.remote_fleet import RemoteFleet
from tests.support.cuttable_link import cuttable_link
from tests.support.local_api import Client, serving
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database

KEY = "a-viewers-key"
KEYS = ApiKeys.parse(f"viewer:{hashlib.sha256(KEY.encode()).hexdigest()}")


def at(client: Client) -> str:
    return str(client.session._base_url)


def watching(url: str, key: str | None = None) -> RemoteFleet:
    return RemoteFleet(url, None if key is None else SecretStr(key), lambda: 0.5, 0.05)


@asynccontextmanager
async def followed(fleet: RemoteFleet) -> AsyncIterator[RemoteFleet]:
    task = asyncio.create_task(fleet.follow())
    try:
        yield fleet
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def collected(database: Database) -> Job:
    """An exchange, a job, a worker and live prices."""
    await ConnectorRegistry(database).ensure("simulated", Limits(60, 1_000))
    about: dict[str, Any] = {"host": "node", "pid": 7, "concurrency": 4, "metrics": None}
    await LiveWorkers(database).be_seen("node:7:abc", about)
    board = LiveBoard(database)
    price = SnapPrice("BTC/USDT", 1.0, 2.0, 1.5, 10.0, 11.0)
    await board.publish_prices(PriceSnapshot("simulated", 1, 11.0, (price,)))
    await board.publish_heartbeat(HeartbeatMessage("simulated", 1, {"ts": 11.0, "context": {}}))
    spec = JobSpec("simulated", "ohlcv_incremental", "BTC/USDT", "1m")
    return (await JobQueue(database).add(spec))[0]


async def test_it_begins_with_what_is_there(database: Database, tmp_path: Path) -> None:
    job = await collected(database)
    async with serving(database, tmp_path) as client, followed(watching(at(client))) as fleet:
        await until(lambda: fleet.picture.connectors, "the lists are read")
        picture = fleet.picture
        assert picture.trouble is None
        assert list(picture.jobs) == [str(job.id)]
        assert [each["id"] for each in picture.workers] == ["node:7:abc"]
        assert picture.prices["simulated", "BTC/USDT"]["payload"]["mid"] == 1.5
        assert picture.heartbeats["simulated"]["payload"]["ts"] == 11.0


async def test_changes_arrive_as_events(database: Database, tmp_path: Path) -> None:
    job = await collected(database)
    async with serving(database, tmp_path) as client, followed(watching(at(client))) as fleet:
        await until(lambda: fleet.picture.jobs, "the lists are read")
        await JobQueue(database).pause(job.id)
        await until(
            lambda: fleet.picture.jobs[str(job.id)]["status"] == "paused", "the pause is seen"
        )
        price = SnapPrice("BTC/USDT", 3.0, 4.0, 3.5, 12.0, 13.0)
        await LiveBoard(database).publish_prices(PriceSnapshot("simulated", 1, 13.0, (price,)))
        await until(
            lambda: fleet.picture.prices["simulated", "BTC/USDT"]["payload"]["mid"] == 3.5,
            "the price is seen",
        )


async def test_budgets_are_read_again_and_again(database: Database, tmp_path: Path) -> None:
    await collected(database)
    async with serving(database, tmp_path) as client, followed(watching(at(client))) as fleet:
        await until(lambda: fleet.picture.connectors, "the lists are read")
        await LiveWorkers(database).leave("node:7:abc")
        await until(lambda: not fleet.picture.workers, "the worker has left")


async def test_an_api_that_goes_away_is_shown_and_found_again(
    database: Database, tmp_path: Path
) -> None:
    await collected(database)
    async with (
        serving(database, tmp_path) as client,
        cuttable_link(int(at(client).rpartition(":")[2].strip("/"))) as wire,
        followed(watching(f"http://127.0.0.1:{wire.port}")) as fleet,
    ):
        await until(lambda: fleet.picture.connectors, "the lists are read")
        await wire.cut()
        await until(lambda: fleet.picture.trouble, "the trouble is shown")
        assert fleet.picture.connectors, "what was known stays"
        await wire.mend()
        await until(lambda: fleet.picture.trouble is None, "it is found again")


async def test_without_an_api_it_says_so_and_goes_on_trying() -> None:
    async with followed(watching("http://127.0.0.1:9")) as fleet:
        await until(lambda: fleet.picture.trouble, "the trouble is shown")
        assert "http://127.0.0.1:9" in str(fleet.picture.trouble)


async def test_a_key_opens_a_remote_fleet_and_a_wrong_one_ends_it(
    database: Database, tmp_path: Path
) -> None:
    await collected(database)
    async with serving(database, tmp_path, door=Door(keys=KEYS)) as client:
        async with followed(watching(at(client), KEY)) as fleet:
            await until(lambda: fleet.picture.connectors, "the lists are read")
        with pytest.raises(ApiRefused, match="COLLECTOR_TOKEN"):
            await watching(at(client), "another").follow()
        with pytest.raises(ApiRefused, match="COLLECTOR_TOKEN"):
            await watching(at(client)).follow()


async def test_the_viewer_shows_a_real_fleet(database: Database, tmp_path: Path) -> None:
    await collected(database)
    async with serving(database, tmp_path) as client:
        fleet = watching(at(client))
        app = Viewer(fleet, SystemClock(), 0.2, "5")
        async with app.run_test(size=(80, 24)):
            await until(lambda: "BTC/USDT" in app.export_screenshot(), "the price is drawn")
