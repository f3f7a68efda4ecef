"""What an operator sees when something is wrong, and that the command in the table helps.

The rows of docs/operations.md that no other test tries. The processes are started once for all of
them, and every test leaves no job behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.mongo.client import Database
from migrations import runner
from tests.acceptance.operator_desk import WorkingDesk, desk_at
from tests.support.databases import new_name
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FORTY = [f"SIM{number:05d}/USDT" for number in range(1, 41)]
QUICK_CIRCUIT = ("--circuit", "circuit_min_closed_sec=1", "--circuit", "circuit_half_open_probe=1")


@pytest.fixture(scope="module")
async def running(
    mongo_uri: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[WorkingDesk]:
    name = new_name()
    async with Database(mongo_uri, name) as database:
        await database.read_server_clock()
        await runner.up(database)
        async with desk_at(mongo_uri, name, tmp_path_factory.mktemp("desk")).working() as desk:
            await desk.asked("connector", "add", "simulated")
            yield desk
        await database.raw.client.drop_database(name)


@pytest.fixture
async def desk(running: WorkingDesk) -> AsyncIterator[WorkingDesk]:
    yield running
    await running.asked("job", "remove", "--type", "ohlcv_incremental", "--type", "ohlcv_backfill")


async def collect(desk: WorkingDesk, *symbols: str, since: str = "2h") -> list[Any]:
    """The new jobs of these series, which have run once."""
    added = await desk.asked("add", "simulated", *symbols, "--timeframes", "1m", "--since", since)
    created: list[Any] = added["created"]
    return created


async def test_forty_series_of_an_exchange_that_is_down_are_one_trouble(desk: WorkingDesk) -> None:
    await desk.asked("connector", "set", "simulated", *QUICK_CIRCUIT)
    await collect(desk, *FORTY)
    await desk.exchange_goes()
    trouble = await desk.sees("unreachable")
    assert trouble["jobs"] >= len(FORTY)
    assert trouble["help"] == "collector connector show simulated"

    async def tripped() -> bool:
        shown = await desk.asked("connector", "show", "simulated")
        return bool(shown["circuit"]["state"] == "TRIPPED")

    await until(tripped, "the circuit gate trips")
    await desk.exchange_comes()
    await desk.sees_no_trouble()
