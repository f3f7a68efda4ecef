"""Verbs as processes of their own, and the databases and workers that they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.clock import SystemClock
from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.home import announced_uri
from collector.simulated.listing import listings
from collector.simulated.server import SimulatedExchange
from tests.support.datalayer_stage import DAYS
from tests.support.local_collector import DAY
from tests.support.verbs import run_program

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

CLI = ("collector.cli",)
ADD = (*CLI, "connector", "add", "simulated", "--json")


async def test_as_a_process_it_answers_on_standard_output_and_with_an_exit_code(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    env = {
        "COLLECTOR_HOME": str(tmp_path),
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
    }
    added = await run_program(*ADD, cwd=tmp_path, env=env)
    assert (added.facts["created"], added.err) == (True, "")
    again = await run_program(*CLI, "connector", "show", "simulatde", cwd=tmp_path, env=env)
    assert (again.code, again.out) == (3, "")
    assert again.err.startswith("E_API: there is no connector 'simulatde'")


@pytest.mark.parametrize("verb", ["status", "migrate up"])
async def test_an_address_that_is_none_is_one_line_without_its_password(
    verb: str, tmp_path: Path
) -> None:
    wrong = "mongodb://collector:se/cret@127.0.0.1/?replicaSet=rs0"
    env = {"COLLECTOR_HOME": str(tmp_path), "COLLECTOR_MONGO_URI": wrong}
    ended = await run_program(*CLI, *verb.split(), cwd=tmp_path, env=env)
    assert (ended.code, ended.out, ended.err.count("\n")) == (8, "", 1)
    assert ended.err.startswith("E_CONFIG: mongo_uri is not the address of a MongoDB")
    assert "cret" not in ended.err


async def test_the_embedded_one_is_started_and_prepared_or_joined(tmp_path: Path) -> None:
    env = {"COLLECTOR_HOME": str(tmp_path)}
    made = await run_program(*ADD, cwd=tmp_path, env=env)
    assert made.facts["created"] is True
    assert announced_uri(tmp_path) is None
    async with await EmbeddedMongo.start(tmp_path, purpose="somebody else"):
        listed = await run_program(*CLI, "connector", "list", "--json", cwd=tmp_path, env=env)
    assert [each["exchange_id"] for each in listed.facts["items"]] == ["simulated"]


async def test_a_verb_alone_starts_database_and_worker_and_leaves_nothing_running(
    tmp_path: Path,
) -> None:
    now_ms = SystemClock().wall_ms()
    first_ms = now_ms - now_ms % DAY - DAYS * DAY
    async with SimulatedExchange(listed=listings(5, listed_ms=first_ms)) as exchange:
        ended = await run_program(
            *("collector.cli.datalayer", "backfill"),
            *("--symbols", "BTCUSDT", "--since", str(first_ms + 2 * DAY), "--json"),
            cwd=tmp_path,
            env={
                "COLLECTOR_HOME": str(tmp_path),
                "COLLECTOR_API__ADAPTER": "simulated",
                "COLLECTOR_API__BASE_URL": exchange.url,
                "COLLECTOR_API__PAGE_SIZE": "400",
                "COLLECTOR_STORAGE__BASE_DIR": str(tmp_path / "lake"),
            },
        )
    made = ended.facts
    assert made["worker_started"] is True
    [series] = made["series"]
    assert (series["first_ts"], series["missing"]) == (first_ms + 2 * DAY, 0)
    assert announced_uri(tmp_path) is None
    assert (tmp_path / "lake" / "simulated" / "BTC-USDT" / "1h.parquet").is_file()
    asked = [entry for entry in exchange.journal.since() if entry.path == "/api/v3/klines"]
    assert max(entry.limit or 0 for entry in asked) == 400
