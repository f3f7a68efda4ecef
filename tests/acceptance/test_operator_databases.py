"""What an operator sees of a MongoDB that is down, frozen or lost, and of a full disk."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.acceptance.full_disk import filled, said_to_be_full, small_disk
from tests.acceptance.operator_desk import desk_at
from tests.support.cuttable_link import cuttable_link
from tests.support.frozen import frozen
from tests.support.link_address import through
from tests.support.processes import program
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.mongo.client import Database
    from collector.mongo.embedded import EmbeddedMongo
    from tests.acceptance.operator_desk import Desk
    from tests.support.cuttable_link import CuttableLink

SERIES = ("simulated", "BTC/USDT", "--timeframes", "1m", "--since", "3d")


@asynccontextmanager
async def down(link: CuttableLink) -> AsyncIterator[None]:
    await link.cut()
    yield
    await link.mend()


async def test_a_mongodb_that_is_down_or_frozen_is_the_trouble_everywhere(
    own_mongo: EmbeddedMongo, own_database: Database, tmp_path: Path
) -> None:
    async with cuttable_link(own_mongo.port) as link:
        desk = desk_at(through(link.port, own_mongo.uri), "test", tmp_path)

        async def well() -> bool:
            return not await desk.troubles()

        async with desk.api() as desk.rest:
            async with down(link):
                seen = await desk.troubles()
                assert seen.keys() == {"mongodb"}
                assert "start MongoDB again" in seen["mongodb"]["help"]
                told = await desk.verb("doctor")
                assert told.code == 1
                assert "problem mongodb        MongoDB cannot be reached" in told.out
            await until(well, "it goes on by itself")
            async with frozen(own_database):
                assert (await desk.troubles()).keys() == {"mongodb"}
                ended = await desk.verb("status")
                assert (ended.code, ended.err.split(":")[0]) == (3, "E_API")
            await until(well, "it goes on by itself")


async def collected(desk: Desk) -> str:
    """Three days of a series, fetched by a worker that is gone afterwards; the backfill's id."""
    added = await desk.asked("add", *SERIES)
    [job] = [each["id"] for each in added["created"] if each["type"] == "ohlcv_backfill"]
    async with desk.worker("--until-idle") as worker:
        assert await worker.ended() == 0
    return str(job)


async def stored_until(desk: Desk) -> int:
    read = await desk.asked("read", "simulated", "BTC/USDT", "1m", "--limit", "1")
    return int(read["rows"][-1][0])


async def test_a_lost_database_comes_back_by_recover_and_no_stored_bar_is_fetched_again(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    desk = desk_at(mongo_uri, database.raw.name, tmp_path)
    async with desk.exchange():
        await collected(desk)
        until_ms = await stored_until(desk)
        before = len(await desk.requests())
        for name in await database.raw.list_collection_names():
            await database.raw[name].delete_many({})
        seen = await desk.verb("status")
        assert (seen.code, seen.err.split(":")[0]) == (8, "E_CONFIG"), seen
        async with program("collector.cli", "recover", **desk.settings) as recovering:
            assert await recovering.ended() == 0, recovering.said
        jobs = (await desk.asked("job", "list", "--type", "ohlcv_backfill"))["items"]
        assert [job["state"] for job in jobs] == ["success"]
        async with desk.worker("--until-idle") as worker:
            assert await worker.ended() == 0
        again = [
            each
            for each in (await desk.requests())[before:]
            if each["path"] == "/api/v3/klines" and each["start_ms"] <= until_ms
        ]
        assert again == []


async def test_a_backup_is_restored_into_an_empty_database_and_an_empty_lake(
    database: Database, empty_database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    desk = desk_at(mongo_uri, database.raw.name, tmp_path)
    async with desk.exchange():
        await collected(desk)
        until_ms = await stored_until(desk)
        await desk.asked("backup", str(tmp_path / "backup"))
        empty = desk_at(mongo_uri, empty_database.raw.name, tmp_path / "other")
        await empty.asked("restore", str(tmp_path / "backup"))
        assert await stored_until(empty) == until_ms
        jobs = (await empty.asked("job", "list", "--type", "ohlcv_backfill"))["items"]
        assert [job["state"] for job in jobs] == ["success"]


async def test_a_full_disk_is_named_and_over_when_there_is_room(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    place, flag = tmp_path / "disk", tmp_path / "full"
    with small_disk(place, megabytes=64) as mounted:
        desk = desk_at(mongo_uri, database.raw.name, tmp_path)
        desk.settings |= {"COLLECTOR_DATA": str(place / "lake"), "FULL_DISK_FLAG": str(flag)}
        worker = "workers" if mounted else "tests.acceptance.full_disk_worker"
        async with desk.exchange(), program(worker, **desk.settings):
            with filled(place) if mounted else said_to_be_full(flag):
                await desk.asked("add", *SERIES)

                async def full() -> bool:
                    return "disk" in await desk.status()

                await until(full, "the disk is the trouble")
                trouble = (await desk.status())["disk"]
                assert "make room" in trouble["help"]
                if mounted:
                    assert (await desk.verb("doctor")).code == 1
            # They would by themselves, after their pauses.
            await desk.asked("job", "run", "--exchange", "simulated", "--type", "ohlcv_backfill")

            async def well() -> bool:
                return not await desk.status()

            await until(well, "it goes on by itself")
