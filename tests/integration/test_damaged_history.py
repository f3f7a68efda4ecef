"""A damaged file of a network: seen in status, troubles and doctor, and mended by repair."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.history.inbox import EventInbox
from collector.history.layout import ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.terms import HistoryTerms
from collector.operations.trouble_facts import troubles_now
from collector.operations.troubles import TroubleKind
from collector.store.disk import LocalDisk
from collector.store.store import Store
from tests.integration.test_worker_runtime import CONFIG, working
from tests.support.history_trades import added, sale
from tests.support.local_api import serving
from tests.support.until import until
from tests.support.verbs import run_here
from workers.handlers.history_apply import HistoryApply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from collector.history.event import Event
    from collector.mongo.client import Database
    from tests.support.local_api import Client
    from workers.runtime import Worker

NET, OTHER_NET = "riemann", "kelvin"
TERMS = HistoryTerms((OTHER_NET, NET))
URL = "/api/v1/history"
EVENTS = [added(f"0x{n}", n, sale(n + 1)) for n in range(4)]


@pytest.fixture(autouse=True)
def home(
    database: Database, mongo_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    for name, value in {
        "HOME": str(tmp_path / "home"),
        "DATA": str(tmp_path),
        "MONGO_URI": mongo_uri,
        "MONGO_DB": database.raw.name,
        "API__ADAPTER": "simulated",
        "HISTORY__NETWORKS": json.dumps(TERMS.networks),
    }.items():
        monkeypatch.setenv(f"COLLECTOR_{name}", value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(database, tmp_path, history=TERMS) as client:
        yield client


def worker(database: Database, tmp_path: Path) -> AbstractAsyncContextManager[Worker]:
    handler = HistoryApply(database, Store(tmp_path), TERMS)
    return working(database, {"history_apply": handler}, replace(CONFIG, networks=TERMS.networks))


async def send(client: Client, *events: Event, network: str = NET) -> dict[str, Any]:
    body = {"events": [each.document() for each in events]}
    answer = await client.post(f"{URL}/{network}/events", body)
    assert answer.status == 202, answer.body
    return dict(answer.body)


async def ask(client: Client, network: str = NET, **more: Any) -> Any:
    pair = {"network": network, "base": "1:GOLD", "quote": "1:OIL", **more}
    return await client.get(f"{URL}/volume", params=pair)


async def applied(database: Database, through: int, network: str = NET) -> None:
    async def is_so() -> bool:
        return (await EventInbox(database, network).state()).applied_through >= through

    await until(is_so, f"{network} has applied {through}")


def segments(root: Path) -> list[Path]:
    return sorted((root / ledger_folder(NET)).glob("*.parquet"))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


async def verb(line: str) -> tuple[int, Any]:
    ended = await run_here(*line.split(), "--json")
    assert ended.out, ended.err
    return ended.code, json.loads(ended.out)


@pytest.fixture
async def damaged(client: Client, database: Database, tmp_path: Path) -> Path:
    """Four events in four segments; a bit of the second is another. Also a sound network."""
    async with worker(database, tmp_path):
        for number, event in enumerate(EVENTS, start=1):
            await send(client, event)
            await applied(database, number)
        await send(client, EVENTS[0], network=OTHER_NET)
        await applied(database, 1, OTHER_NET)
    shutil.rmtree(tmp_path / "_history" / NET / "buckets")
    [_, second, *_] = segments(tmp_path)
    flip(second)
    return second


async def test_a_damaged_segment_stops_reads_of_its_network_and_nothing_else(
    client: Client, database: Database, damaged: Path
) -> None:
    answer = await ask(client)
    assert (answer.status, answer.code) == (503, "history_damaged")
    assert NET in answer.body["detail"]
    assert "collector repair" in answer.body["detail"]
    assert (await ask(client, OTHER_NET)).body["trades"] == 1
    pairs = (await client.get(f"{URL}/pairs")).body
    assert {each["network"] for each in pairs["items"]} == {OTHER_NET}
    assert pairs["unreadable"] == [NET]
    assert (await send(client, added("0x9", 9, sale(1))))["accepted"] == 1, "events are accepted"


async def test_damage_is_a_trouble_until_it_is_repaired(
    client: Client,
    database: Database,
    damaged: Path,
    tmp_path: Path,
) -> None:
    await ask(client)
    [trouble] = [each for each in await troubles_now(database) if each.kind is TroubleKind.DAMAGED]
    assert damaged.name in trouble.reason
    assert (trouble.help, trouble.since_ms is not None) == ("collector repair", True)
    code, facts = await verb("status")
    assert code == 1
    assert ("damaged", NET) in [(each["kind"], each["network"]) for each in facts["troubles"]]
    code, facts = await verb("doctor")
    assert code == 1
    [finding] = [each for each in facts["findings"] if each["area"] == "history"]
    assert (finding["level"], finding["help"].split(":")[0]) == ("problem", "collector repair")
    assert damaged.name in finding["message"]
    await verb("repair")
    troubles = (await verb("status"))[1]["troubles"]
    assert "damaged" not in [each["kind"] for each in troubles]
    findings = (await verb("doctor"))[1]["findings"]
    assert [each["level"] for each in findings if each["area"] == "history"] == ["ok"]


async def test_repair_names_the_lost_events_which_may_be_sent_again(
    client: Client,
    database: Database,
    damaged: Path,
    tmp_path: Path,
) -> None:
    code, told = await verb("repair --dry-run")
    assert code == 7
    assert [each["path"] for each in told["damaged"]] == [str(damaged.relative_to(tmp_path))]
    assert told["lost_events"] == [{"network": NET, "first": 2, "last": 2}]
    assert damaged.exists()
    async with worker(database, tmp_path):
        code, done = await verb("repair")
        assert (code, done["lost_events"]) == (0, told["lost_events"])
        [aside] = [each["set_aside"] for each in done["damaged"]]
        assert (tmp_path / aside).exists()
        assert (await ask(client)).body["trades"] == 3
        assert (await send(client, *EVENTS)) == {"sequence": 5, "accepted": 1, "duplicates": 3}
        assert (await ask(client, after=5)).body["trades"] == 4
    assert LedgerFiles(LocalDisk(tmp_path), ledger_folder(NET)).view().head == 5
    assert (await verb("repair"))[1]["damaged"] == []


async def test_a_segment_that_is_gone_is_lost_like_a_damaged_one(
    client: Client,
    database: Database,
    damaged: Path,
    tmp_path: Path,
) -> None:
    damaged.unlink()
    assert (await verb("doctor"))[0] == 1
    async with worker(database, tmp_path):
        code, done = await verb("repair")
        assert code == 0
        assert done["lost_events"] == [{"network": NET, "first": 2, "last": 2}]
        assert (await ask(client, after=4)).body["trades"] == 3


async def test_a_worker_that_meets_damage_says_so(
    client: Client, database: Database, damaged: Path, tmp_path: Path
) -> None:
    await send(client, added("0x9", 9, sale(1)))
    async with worker(database, tmp_path):

        async def is_told() -> bool:
            return any(each.kind is TroubleKind.DAMAGED for each in await troubles_now(database))

        await until(is_told, "the damage is a trouble")


async def test_damaged_buckets_are_removed_and_made_again(
    client: Client, database: Database, tmp_path: Path
) -> None:
    async with worker(database, tmp_path):
        await send(client, *EVENTS)
        await applied(database, 4)
        flip(tmp_path / "_history" / NET / "buckets" / "current.json")
        assert (await ask(client)).body["trades"] == 4
        code, done = await verb("repair")
        assert (code, done["lost_events"]) == (0, [])
        assert [each["kind"] for each in done["damaged"]] == ["buckets"]
        assert (await send(client, added("0x9", 9, sale(1))))["sequence"] == 5
        assert (await ask(client, after=5)).body["trades"] == 5
    assert (await verb("repair --dry-run"))[0] == 0
