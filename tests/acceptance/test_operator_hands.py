"""What an operator sees of workers that are gone, of a backlog, and of keys that are replaced."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

from tests.acceptance.operator_desk import desk_at
from tests.support.ccxt_venue import Venue, says, serving
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

HISTORY = ("ohlcv_backfill", "--symbol", "BTC/USDT", "--timeframe", "1m", "--since", "2h")
TEN_MINUTES_MS = 600_000


async def test_a_killed_worker_and_a_backlog_are_seen_and_another_worker_helps(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    desk = desk_at(mongo_uri, database.raw.name, tmp_path)
    await desk.asked("connector", "add", "simulated")
    await desk.asked("job", "add", "simulated", *HISTORY)
    async with desk.exchange():
        async with desk.worker("--exchange", "kraken") as wrong:
            await until(lambda: wrong.lines("worker_started"), "it has begun")
            # Nobody took the jobs for ten minutes.
            now_ms = await database.now_ms()
            await database.jobs.update_many({}, {"$set": {"next_run_at": now_ms - TEN_MINUTES_MS}})
            overdue = (await desk.status())["overdue"]
            assert overdue["exchange_id"] == "simulated"
            assert "collector worker" in overdue["help"]
            wrong.signal(signal.SIGKILL)
            await wrong.ended()
        # Forty seconds later it does not count as alive any more.
        await database.workers.update_many({}, {"$set": {"expire_at": 0}})
        assert (await desk.status())["no_worker"]["help"] == "collector up, or collector worker"
        async with desk.worker():

            async def well() -> bool:
                return not await desk.status()

            await until(well, "the new worker has done what was due")


async def test_a_key_of_the_api_is_replaced_while_both_are_accepted(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    desk = desk_at(mongo_uri, database.raw.name, tmp_path)
    old, new = [await desk.asked("key", "new", "--role", "admin") for _ in range(2)]

    async def accepted(lines: list[str]) -> list[int]:
        async with desk.api(COLLECTOR_API_KEYS=",".join(lines)) as api:
            answers = []
            for each in (old, new):
                bearer = {"Authorization": f"Bearer {each['key']}"}
                async with api.session.get("/api/v1/me", headers=bearer) as response:
                    answers.append(response.status)
            return answers

    assert await accepted([old["line"], new["line"]]) == [200, 200]
    assert await accepted([new["line"]]) == [401, 200]


async def test_a_refused_key_of_an_exchange_is_replaced_without_a_restart(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    venue = Venue("bybit")
    rights = {"retCode": 0, "result": {"readOnly": 0, "permissions": {"Spot": ["SpotTrade"]}}}
    venue.turns.append(says(200, rights))
    async with serving(venue) as address:
        desk = desk_at(mongo_uri, database.raw.name, tmp_path)
        desk.settings |= {
            "COLLECTOR_EXCHANGE_URLS": json.dumps({"bybit": address}),
            "COLLECTOR_EXCHANGES": json.dumps({"bybit": {"key_ref": "secret://bybit/read"}}),
        }
        key = tmp_path / "home" / "secrets" / "bybit" / "read"
        key.parent.mkdir(parents=True)
        key.write_text("old:secret")
        key.chmod(0o600)
        await desk.asked("connector", "add", "bybit")
        async with desk.worker():

            async def refused() -> bool:
                return "key_refused" in await desk.status()

            await until(refused, "the key is refused")
            read_only = {"retCode": 0, "result": {"readOnly": 1}}
            venue.turns.append(says(200, read_only))
            key.write_text("new:secret")
            await desk.asked("job", "run", "--exchange", "bybit", "--state", "failed")

            async def well() -> bool:
                return not await desk.status()

            await until(well, "the new key is used", 30)
    keys = [each.headers.get("X-BAPI-API-KEY") for each in venue.requests]
    assert [each for each in keys if each] == ["old", "new"]
