"""`collector doctor`: every area when it is well, and what it says when it is not."""

from __future__ import annotations

import json
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseRefused, DatabaseUnavailable
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.operations.doctor.finding import Level
from collector.operations.doctor.mongodb import holes, replica_set, unreachable
from collector.settings import Settings
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from collector.store import layout
from collector.store.store import Store
from tests.support.guarded_mongo import guarded_mongo
from tests.support.verbs import run_here

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.lakes import Lake
    from tests.support.redis_server import RedisServer

AREAS = {
    *("settings", "mongodb", "clock", "workers", "exchanges", "disk", "store", "history"),
    *("api keys", "exchange keys", "fxcm", "redis", "versions"),
}


@pytest.fixture
def home(
    database: Database, mongo_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Settings of this process: this test's database, and all else in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_MONGO_URI", mongo_uri)
    monkeypatch.setenv("COLLECTOR_MONGO_DB", database.raw.name)
    return tmp_path


async def examined(*options: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and what was found."""
    ended = await run_here("doctor", "--json", *options)
    facts = json.loads(ended.out)
    assert facts["ok"] == (ended.code == 0), ended.err
    assert ended.err == ""
    return ended.code, facts["findings"]


def of(found: list[dict[str, Any]], area: str, level: str) -> str:
    """The messages of an area at a level, in one text."""
    chosen = [each for each in found if (each["area"], each["level"]) == (area, level)]
    return "\n".join(f"{each['message']} -> {each['help']}" for each in chosen)


async def test_all_is_well_on_a_new_installation(home: Path) -> None:
    code, found = await examined()
    assert code == 0
    assert {each["area"] for each in found} == AREAS
    assert {each["level"] for each in found} == {"ok"}
    mongodb = of(found, "mongodb", "ok")
    for word in ("MongoDB 6.0.5, at 127.0.0.1", "replica set", "majority", "round trip", "schema"):
        assert word in mongodb


async def test_lines_for_people_end_with_a_count(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_SERVER__HOST", "0.0.0.0")
    ended = await run_here("doctor")
    assert ended.code == 1
    assert "problem api keys       refusing to listen on 0.0.0.0" in ended.out
    assert "-> set COLLECTOR_API_KEYS, or listen on 127.0.0.1" in ended.out
    assert ended.out.splitlines()[-1].endswith("0 warnings, 1 problem")


async def test_it_works_when_mongodb_is_down(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_MONGO_URI", "mongodb://127.0.0.1:1/")
    code, found = await examined()
    assert code == 1
    assert "MongoDB cannot be reached" in of(found, "mongodb", "problem")
    assert "not checked" in of(found, "clock", "warning")
    assert {each["area"] for each in found} == AREAS - {"workers"}


async def test_a_user_who_may_not_write(
    home: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    (host, port), *_ = database.raw.client.nodes
    admin, roles = database.raw.client.admin, [{"role": "read", "db": database.raw.name}]
    name = f"reader-{database.raw.name}"
    await admin.command("createUser", name, pwd="s3cret", roles=roles)
    monkeypatch.setenv("COLLECTOR_MONGO_URI", f"mongodb://{host}:{port}/?authSource=admin")
    monkeypatch.setenv("COLLECTOR_MONGO_USER", name)
    monkeypatch.setenv("COLLECTOR_MONGO_PASSWORD", "s3cret")
    try:
        code, found = await examined()
    finally:
        await admin.command("dropUser", name)
    assert code == 1
    assert "grant readWrite" in of(found, "mongodb", "problem")
    assert "s3cret" not in json.dumps(found)


def test_what_helps_depends_on_why_mongodb_cannot_be_used(tmp_path: Path) -> None:
    far, own = Settings(home=tmp_path, mongo_uri="mongodb://far"), Settings(home=tmp_path)
    away, refused = DatabaseUnavailable("no answer"), DatabaseRefused("refuses this user")
    assert "mongo_user" in str(unreachable(far, refused).help)
    assert "start it" in str(unreachable(far, away).help)
    assert "mongod.log" in str(unreachable(own, away).help)


def test_a_mongod_without_a_set_and_a_set_without_a_primary() -> None:
    assert "not a replica set" in replica_set({"ok": 1}).message
    waiting = replica_set({"setName": "rs0", "hosts": ["a", "b"], "isWritablePrimary": False})
    assert (waiting.level, "no primary" in waiting.message) == (Level.PROBLEM, True)
    three = {"setName": "rs0", "hosts": ["a", "b", "c"], "isWritablePrimary": True, "me": "a"}
    assert replica_set(three).level is Level.OK


async def test_a_server_that_gives_its_memory_away_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded_mongo(home, "root", "s3cret") as server:
        await server.initiate()
        monkeypatch.setenv("COLLECTOR_MONGO_URI", server.uri)
        monkeypatch.setenv("COLLECTOR_MONGO_USER", "root")
        monkeypatch.setenv("COLLECTOR_MONGO_PASSWORD", "s3cret")
        _, found = await examined()
    said = of(found, "mongodb", "warning")
    assert "MongoDB 6.0.5 has CVE-2025-14847" in said
    assert "6.0.27" in said
    assert "--networkMessageCompressors" in said


MEMORY, CRASH, ELECTION = "CVE-2025-14847", "CVE-2026-9740", "CVE-2026-118383"


@pytest.mark.parametrize(
    ("version", "has_zlib", "members", "names"),
    [
        ((4, 2, 25, 0), True, 3, {MEMORY}),
        ((6, 0, 26, 0), True, 1, {MEMORY}),
        ((6, 0, 26, 0), False, 1, set()),
        ((6, 0, 27, 0), True, 1, set()),
        ((6, 0, 29, 0), True, 3, {ELECTION}),
        ((6, 0, 30, 0), True, 3, set()),
        ((7, 0, 27, 0), True, 1, {MEMORY, CRASH}),
        ((7, 0, 34, 0), True, 3, {CRASH, ELECTION}),
        ((8, 0, 24, 0), True, 1, set()),
        ((8, 1, 9, 0), True, 1, {MEMORY, CRASH}),
        ((8, 3, 3, 0), True, 1, set()),
        ((8, 3, 15, 0), True, 2, {ELECTION}),
        ((9, 0, 6, 0), True, 3, {ELECTION}),
        ((9, 0, 7, 0), True, 3, set()),
    ],
)
def test_known_holes_of_a_version(
    version: tuple[int, ...], has_zlib: bool, members: int, names: set[str]
) -> None:
    found = holes(version, has_zlib=has_zlib, members=members)
    said = " ".join(each.message for each in found)
    assert {name for name in (MEMORY, CRASH, ELECTION) if name in said} == names


async def test_settings_that_cannot_be_read_are_a_finding(home: Path) -> None:
    (home / "collector.yaml").write_text("mongo_ury: nowhere\n")
    code, found = await examined()
    assert code == 1
    assert "did you mean mongo_uri" in of(found, "settings", "problem")
    assert {each["area"] for each in found} == {"settings", "versions"}


async def test_an_older_schema_names_the_verb_that_helps(home: Path, database: Database) -> None:
    await database.system.update_one({"_id": "schema"}, {"$set": {"version": 1}})
    code, found = await examined()
    assert code == 1
    assert "-> collector migrate up" in of(found, "mongodb", "problem")
    assert "another schema" in of(found, "exchanges", "warning")


async def test_writing_leaves_nothing_behind(home: Path, database: Database) -> None:
    (home / "data").mkdir()
    before = await database.system.find({})
    await examined()
    assert await database.system.find({}) == before
    assert [path for path in (home / "data").rglob("*") if path.is_file()] == []


async def test_a_blocked_exchange_and_jobs_without_a_worker(home: Path, database: Database) -> None:
    registry = ConnectorRegistry(database)
    await registry.ensure("simulated", Limits(100, 1_000))
    await registry.ensure("binance", Limits(100, 1_000))
    await JobQueue(database).add(JobSpec("simulated", "ohlcv_backfill", "BTC/USDT", "1m"))
    await registry.block("simulated", "too many", for_ms=600_000)
    code, found = await examined()
    assert code == 1
    assert "simulated: blocked: the exchange has blocked us" in of(found, "exchanges", "warning")
    assert "no worker is running" in of(found, "workers", "problem")
    assert "binance: active, circuit OPEN, no good answer yet" in of(found, "exchanges", "ok")


async def test_an_exchange_of_the_settings_without_a_connector(home: Path) -> None:
    (home / "collector.yaml").write_text(
        "streams:\n  - {exchange: binance, symbol: BTC/USDT, timeframe: 1m}\n"
    )
    code, found = await examined()
    assert code == 0, "nothing is broken"
    assert "binance: named in the settings" in of(found, "exchanges", "warning")


@asynccontextmanager
async def exchange(monkeypatch: pytest.MonkeyPatch) -> Any:
    async with SimulatedExchange(listed=listings(1)) as running:
        monkeypatch.setenv("COLLECTOR_EXCHANGE_URLS", json.dumps({"simulated": running.url}))
        yield running


async def test_with_ask_each_exchange_gets_one_request_by_a_token(
    home: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ConnectorRegistry(database).ensure("simulated", Limits(100, 60_000))
    async with exchange(monkeypatch) as running:
        await examined()
        assert running.journal.since() == []
        code, found = await examined("--ask")
        assert [entry.path for entry in running.journal.since()] == ["/api/v3/time"]
    assert code == 0
    assert "simulated: answered a request" in of(found, "exchanges", "ok")
    connector = await ConnectorRegistry(database).get("simulated")
    assert connector.usages(await database.now_ms())[0].used == 1
    assert connector.last_good_ms is not None
    code, found = await examined("--ask")
    assert code == 1
    assert "simulated: one request failed" in of(found, "exchanges", "problem")


async def test_a_clock_that_an_exchange_told_and_that_is_off(
    home: Path, database: Database
) -> None:
    await ConnectorRegistry(database).ensure("simulated", Limits(100, 1_000))
    clock = {"drift_ms": -3_000, "doubt_ms": 20, "measured_at": await database.now_ms()}
    await database.connectors.update_one({}, {"$set": {"clock": {**clock, "since": 1}}})
    code, found = await examined()
    assert code == 0
    assert "simulated's clock is 3,000 ms (give or take 20) behind" in of(found, "clock", "warning")


async def test_a_damaged_footer_is_found_and_repair_is_named(home: Path) -> None:
    store, series = Store(home / "data"), Series.of("simulated", "BTC/USDT", "1m")
    bars = CandleBatch.of([(at * 60_000, 1, 1, 1, 1, 1) for at in range(10)])
    store.append_page(series, bars, Interval(0, 600_000), fence=1, known_at=1)
    store.compact(series)
    _, found = await examined()
    assert "footers of 1 of 1 series are sound" in of(found, "store", "ok")
    sealed = home / "data" / layout.sealed_path(series)
    sealed.write_bytes(sealed.read_bytes()[:-20])
    code, found = await examined()
    assert code == 1
    damaged = of(found, "store", "problem")
    assert layout.sealed_path(series) in damaged
    assert "collector repair" in damaged


async def test_an_object_store_is_tried(
    home: Path, bucket: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = bucket.beside(secrets.token_hex(6))
    monkeypatch.setenv("COLLECTOR_DATA", lake.root)
    _, found = await examined()
    assert f"{lake.place} takes, gives back and deletes an object" in of(found, "store", "ok")
    assert lake.everything() == []
    monkeypatch.setenv("COLLECTOR_DATA", lake.root.replace(lake.place, "s3://no-such-bucket-here"))
    code, found = await examined()
    assert code == 1
    assert "cannot be used" in of(found, "store", "problem")


async def test_a_disk_that_takes_nothing(home: Path) -> None:
    (home / "data").write_text("a file where the folder should be")
    code, found = await examined()
    assert code == 1
    assert "takes no file" in of(found, "disk", "problem")


async def test_keys_by_role_and_references_that_lead_nowhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "COLLECTOR_API_KEYS", f"viewer:{'0' * 64},viewer:{'1' * 64},admin:{'2' * 64}"
    )
    (home / "collector.yaml").write_text(
        "exchanges:\n  binance: {key_ref: 'secret://binance/read'}\n"
        "  kraken: {key_ref: 'secret://kraken/read'}\n"
    )
    monkeypatch.setenv("COLLECTOR_SECRET_KRAKEN_READ", "a-key:a-secret")
    code, found = await examined()
    assert code == 1
    assert "1 admin, 2 viewer" in of(found, "api keys", "ok")
    assert "COLLECTOR_SECRET_BINANCE_READ" in of(found, "exchange keys", "problem")
    assert "kraken: secret://kraken/read is there" in of(found, "exchange keys", "ok")
    assert "a-secret" not in json.dumps(found)


async def test_fxcm_is_looked_at_when_it_is_configured(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_FXCM__USER", "somebody")
    monkeypatch.setenv("COLLECTOR_FXCM_PYTHON", str(home / "no-python"))
    code, found = await examined()
    assert code == 1
    wrong = of(found, "fxcm", "problem")
    assert "no-python cannot be run" in wrong
    assert "COLLECTOR_SECRET_FXCM" in wrong


async def test_redis_is_tried_when_it_is_configured(
    home: Path, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_REDIS_URL", redis_server.url)
    _, found = await examined()
    assert "takes messages" in of(found, "redis", "ok")
    await redis_server.kill()
    code, found = await examined()
    assert code == 1
    assert "cannot be used" in of(found, "redis", "problem")


async def test_this_machines_clock_is_compared_with_mongodbs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SystemClock.wall_ms
    monkeypatch.setattr(SystemClock, "wall_ms", lambda clock: real(clock) - 60_000)
    code, found = await examined()
    assert code == 0, "MongoDB's clock decides; ours does no harm"
    assert "ahead of this machine's -> timedatectl" in of(found, "clock", "warning")
