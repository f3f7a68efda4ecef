"""A backup of a running collector, and what comes back from it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import ConfigError, SchemaMismatch, StoreError
from collector.jobs.cursor import Cursor
from collector.jobs.job import JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.lease_terms import LeaseTerms
from collector.market.candles import CandleBatch
from collector.market.interval import Interval, subtract
from collector.market.series import Series
from collector.mongo.client import Collection, Database
from collector.mongo.dump import BACKED_UP, OF_THE_MOMENT
from collector.mongo.schema import VERSION, require_current
from collector.operations import connectors
from collector.operations.backup import MANIFEST, BackupManifest, backed_up
from collector.operations.restoring import restored
from collector.store.disk import LocalDisk
from collector.store.lake_copy import copy_lake
from collector.store.port import Corrupt, Swapped
from collector.store.store import Store
from tests.support.databases import new_name
from tests.support.local_collector import DAY, MINUTE, collecting
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def other(mongo_uri: str) -> AsyncIterator[Database]:
    """An empty database that was never migrated."""
    async with Database(mongo_uri, new_name()) as database:
        yield database
        await database.raw.client.drop_database(database.raw.name)


async def put_back(database: Database, lake: Path, backup: Path) -> BackupManifest:
    storage = LocalDisk(backup)
    manifest = BackupManifest.read(storage, str(backup))
    await restored(database, LocalDisk(lake), storage, manifest)
    return manifest


async def test_cursors_of_a_backup_are_never_ahead_of_its_files(
    database: Database, other: Database, tmp_path: Path
) -> None:
    lake, backup, back = tmp_path / "lake", tmp_path / "backup", tmp_path / "back"
    async with collecting(database, lake, limits=Limits(20, 1_000)) as c:
        first, end = c.first_ms, c.first_ms + 2 * DAY
        job = await c.backfill(end)
        await c.until(job, lambda job: job.cursor.since_ms > first)
        taking = asyncio.create_task(backed_up(database, c.store.storage, LocalDisk(backup)))
        with suppress(Swapped):  # The backfill compacts at its end, too.
            await asyncio.to_thread(c.store.compact, c.series)
        await taking
    await put_back(other, back, backup)
    await require_current(other)
    job = await JobQueue(other).get(job.id)
    claimed = Interval(first, job.cursor.since_ms)
    assert subtract([claimed], Store(back).covered(c.series)) == ()
    async with collecting(other, back) as c:
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(first, end) == c.truth(first, end)
        again = [each for each in c.journal() if each.start_ms < job.cursor.since_ms]
        assert again == []


async def test_what_is_fetched_while_files_are_copied_is_not_claimed(
    database: Database, other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series, store = Series.of("x", "A/B", "1m"), Store(tmp_path / "lake")
    job, _ = await JobQueue(database).add(JobSpec("x", "count", "A/B", "1m"))
    loop = asyncio.get_running_loop()

    async def move(until_ms: int) -> None:
        bar = CandleBatch.of([(until_ms - MINUTE, 1.0, 1.0, 1.0, 1.0, 1.0)])
        store.append_page(
            series, bar, Interval(until_ms - MINUTE, until_ms), fence=1, known_at=until_ms
        )
        cursor = {"$set": {"cursor.since_ms": until_ms}}
        await database.jobs.update_one({"_id": job.id}, cursor)

    def copied(*args: Any) -> dict[str, str]:
        files = copy_lake(*args)
        asyncio.run_coroutine_threadsafe(move(2 * MINUTE), loop).result(10)
        return files

    await move(MINUTE)
    monkeypatch.setattr("collector.operations.backup.copy_lake", copied)
    await backed_up(database, store.storage, LocalDisk(tmp_path / "backup"))
    await put_back(other, tmp_path / "back", tmp_path / "backup")
    [covered] = Store(tmp_path / "back").covered(series)
    assert (await JobQueue(other).get(job.id)).cursor.since_ms == covered.to_ms == MINUTE


async def test_documents_and_indexes_come_back_as_they_were(
    database: Database, other: Database, tmp_path: Path
) -> None:
    await connectors.ensure(database, "simulated", {"rate_limit": 7})
    await database.raw["job_runs"].insert_many([{"n": n} for n in range(2_500)])
    await backed_up(database, LocalDisk(tmp_path / "lake"), LocalDisk(tmp_path / "backup"))
    await put_back(other, tmp_path / "back", tmp_path / "backup")
    for name in ("connectors", "jobs", "job_runs", "markets"):
        before, after = database.raw[name], other.raw[name]
        assert await after.index_information() == await before.index_information()
        assert await after.count_documents({}) == await before.count_documents({})
    assert (await ConnectorRegistry(other).get("simulated")).limits.rate_limit == 7


async def test_a_job_that_ran_is_put_down_and_its_fence_is_raised(
    database: Database, other: Database, tmp_path: Path
) -> None:
    await ConnectorRegistry(database).ensure("x", Limits(10, 1_000))
    queue = JobQueue(database)
    job, _ = await queue.add(JobSpec("x", "count", "a", cursor=Cursor(since_ms=5)))
    leases = await Leasing(database, "ann", terms=LeaseTerms(60_000)).claim("x", 1)
    assert leases
    await backed_up(database, LocalDisk(tmp_path / "lake"), LocalDisk(tmp_path / "backup"))
    second = await database.now_ms() // 1000
    await put_back(other, tmp_path / "back", tmp_path / "backup")
    back = await JobQueue(other).get(job.id)
    assert (back.state, back.cursor) == (State.QUEUED, Cursor(since_ms=5))
    assert back.document["lock"]["locked_by"] is None
    assert back.fence >= second
    assert back.next_run_at <= await other.now_ms(), "it does not wait for the end of the old lease"


async def test_nothing_that_exists_is_overwritten(
    database: Database, other: Database, tmp_path: Path
) -> None:
    lake = LocalDisk(tmp_path / "lake")
    lake.write_atomic("binance/parts/x", b"one")
    await connectors.ensure(database, "simulated")
    await backed_up(database, lake, LocalDisk(tmp_path / "backup"))
    with pytest.raises(ConfigError, match="restore into an empty one"):
        await put_back(database, tmp_path / "back", tmp_path / "backup")
    lake.write_atomic("binance/parts/x", b"two")
    with pytest.raises(ConfigError, match="another binance/parts/x"):
        await put_back(other, tmp_path / "lake", tmp_path / "backup")
    assert await other.raw.list_collection_names() == []


async def test_an_interrupted_restore_starts_over(
    database: Database, other: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connectors.ensure(database, "simulated")
    lake = LocalDisk(tmp_path / "lake")
    lake.write_atomic("binance/parts/x", b"one")
    await backed_up(database, lake, LocalDisk(tmp_path / "backup"))

    async def dies(database: Database) -> None:
        raise OSError("the plug was pulled")

    with monkeypatch.context() as patched:
        patched.setattr("collector.operations.restoring._begin_anew", dies)
        with pytest.raises(OSError, match="plug"):
            await put_back(other, tmp_path / "back", tmp_path / "backup")
    with pytest.raises(SchemaMismatch):
        await require_current(other)
    await put_back(other, tmp_path / "back", tmp_path / "backup")
    await require_current(other)
    assert (tmp_path / "back/binance/parts/x").read_bytes() == b"one"


async def test_a_damaged_or_incomplete_backup_is_refused(
    database: Database, other: Database, tmp_path: Path
) -> None:
    lake, backup = LocalDisk(tmp_path / "lake"), LocalDisk(tmp_path / "backup")
    lake.write_atomic("binance/parts/x", b"one")
    await backed_up(database, lake, backup)
    backup.write_atomic("lake/binance/parts/x", b"ome")
    with pytest.raises(Corrupt):
        await put_back(other, tmp_path / "back", tmp_path / "backup")
    backup.write_atomic("database/system.bson", b"")
    with pytest.raises(Corrupt):
        await put_back(other, tmp_path / "back", tmp_path / "backup")
    backup.delete(MANIFEST)
    with pytest.raises(ConfigError, match="no complete backup"):
        await put_back(other, tmp_path / "back", tmp_path / "backup")


@pytest.mark.parametrize(
    "path",
    ["lake/../outside", "lake/../../outside", "lake/{}/outside", "lake/./x", "outside", "lake/"],
)
async def test_a_backup_whose_paths_lead_out_of_the_lake_is_refused(
    database: Database, other: Database, tmp_path: Path, path: str
) -> None:
    backup, home, path = tmp_path / "backup", tmp_path / "home", path.format(tmp_path)
    await backed_up(database, LocalDisk(tmp_path / "lake"), LocalDisk(backup))
    _claim_file(backup, path, b"crafted")
    with pytest.raises(ConfigError, match="no file of a backup"):
        await put_back(other, home / "lake", backup)
    assert not home.exists()
    assert await other.raw.list_collection_names() == []


@pytest.mark.parametrize("name", ["../outside", "system.users", "unknown", "workers"])
async def test_a_backup_with_a_collection_of_another_name_is_refused(
    database: Database, other: Database, tmp_path: Path, name: str
) -> None:
    backup = tmp_path / "backup"
    await backed_up(database, LocalDisk(tmp_path / "lake"), LocalDisk(backup))
    manifest = orjson.loads((backup / MANIFEST).read_bytes())
    manifest["collections"].append({"name": name, "documents": 0, "indexes": []})
    (backup / MANIFEST).write_bytes(orjson.dumps(manifest))
    with pytest.raises(ConfigError, match="no collection of a backup"):
        await put_back(other, tmp_path / "back", backup)
    assert await other.raw.list_collection_names() == []


@pytest.mark.parametrize("link", ["lake/binance/parts/x", "lake/binance", "lake"])
async def test_a_backup_is_not_read_through_links(
    database: Database, other: Database, tmp_path: Path, link: str
) -> None:
    backup, private = tmp_path / "backup", tmp_path / "private"
    lake = LocalDisk(tmp_path / "lake")
    lake.write_atomic("binance/parts/x", b"a private key")
    await backed_up(database, lake, LocalDisk(backup))
    (backup / link).replace(private)
    (backup / link).symlink_to(private)
    with pytest.raises(StoreError, match="link"):
        await put_back(other, tmp_path / "back", backup)
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize(
    "manifest", [b"[]", b"{}", b'{"format":1}', b'{"format":1,"collections":[1]}']
)
def test_a_list_of_files_that_no_backup_wrote_is_refused(tmp_path: Path, manifest: bytes) -> None:
    (tmp_path / MANIFEST).write_bytes(manifest)
    with pytest.raises(Corrupt):
        BackupManifest.read(LocalDisk(tmp_path), "there")


def test_a_backup_holds_every_collection_that_outlives_a_moment(database: Database) -> None:
    own = {each.name for each in vars(database).values() if isinstance(each, Collection)}
    assert own - OF_THE_MOMENT == BACKED_UP


async def test_a_backup_is_for_its_owner_alone(
    database: Database, mongo_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connectors.ensure(database, "simulated")
    LocalDisk(tmp_path / "lake").write_atomic("binance/parts/x", b"one")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLLECTOR_DATA", str(tmp_path / "lake"))
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo_uri)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", database.raw.name)
    (tmp_path / "b").mkdir(mode=0o755)
    before = _umask()
    assert (await run_here("backup", str(tmp_path / "b"))).code == 0
    made = list((tmp_path / "b").rglob("*"))
    assert {MANIFEST, "x", "system.bson"} <= {each.name for each in made}
    assert [each for each in made if each.stat().st_mode & 0o077] == []
    assert _umask() == before


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _claim_file(backup: Path, path: str, data: bytes) -> None:
    """Writes the file where a program that trusts the manifest looks for it."""
    place = backup / path
    if not path.endswith("/"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    manifest = orjson.loads((backup / MANIFEST).read_bytes())
    manifest["files"][path] = hashlib.sha256(data).hexdigest()
    (backup / MANIFEST).write_bytes(orjson.dumps(manifest))


async def test_the_verbs_answer(
    database: Database,
    other: Database,
    mongo_uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await connectors.ensure(database, "simulated")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLLECTOR_DATA", str(tmp_path / "lake"))
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo_uri)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", database.raw.name)
    inside = await run_here("backup", str(tmp_path / "lake" / "b"))
    assert (inside.code, "inside one another" in inside.err) == (8, True)
    made = (await run_here("backup", str(tmp_path / "b"), "--json")).facts
    assert (made["schema"], made["files"]) == (VERSION, 0)
    again = await run_here("backup", str(tmp_path / "b"))
    assert (again.code, "not empty" in again.err) == (8, True)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", other.raw.name)
    monkeypatch.setenv("COLLECTOR_DATA", str(tmp_path / "back"))
    back = (await run_here("restore", str(tmp_path / "b"), "--json")).facts
    assert back["documents"] == made["documents"]
    listed = (await run_here("connector", "list", "--json")).facts
    assert [each["exchange_id"] for each in listed["items"]] == ["simulated"]
