"""What a shell is offered, asked the way bash asks: from a database, an API, or nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from tests.support.local_api import know_markets, serving
from tests.support.verbs import run_program

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database


class Shell:
    """bash with this environment, and the cursor at the end of the line."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        self._home = home
        self._env = {"COLLECTOR_HOME": str(home), **env}

    async def offers(self, line: str) -> list[str]:
        asked = {
            "_COLLECTOR_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        }
        ended = await run_program("collector.cli", cwd=self._home, env={**self._env, **asked})
        assert (ended.code, ended.err) == (0, ""), "a shell shows whatever is printed"
        return ended.out.split()


async def _offered(shell: Shell, job_id: str) -> None:
    assert await shell.offers("collector read simulated BT") == ["BTC/USDT"]
    assert await shell.offers("collector add simulated BTC/USDT E") == ["ETH/USDT"]
    assert await shell.offers("collector job pause --symbol SO") == ["SOL/USDT"]
    assert await shell.offers(f"collector job show {job_id[:22]}") == [job_id]
    assert await shell.offers(f"collector job run {job_id} {job_id[:22]}") == [job_id]
    assert await shell.offers("collector job show simulated S") == ["SOL/USDT"]
    assert await shell.offers("collector job show simulated SOL/USDT 1") == ["1m"]
    assert await shell.offers("collector job show simulated SOL/USDT oh") == ["ohlcv_incremental"]


async def _prepare(database: Database) -> str:
    await know_markets(database)
    spec = JobSpec("simulated", "ohlcv_incremental", "SOL/USDT", "1m")
    job, _ = await JobQueue(database).add(spec)
    return str(job.id)


async def test_a_database_offers_symbols_and_jobs(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    job_id = await _prepare(database)
    there = {"COLLECTOR_MONGO_URI": mongo_uri, "COLLECTOR_MONGO_DB": database.raw.name}
    await _offered(Shell(tmp_path, there), job_id)


async def test_an_api_offers_the_same(database: Database, tmp_path: Path) -> None:
    job_id = await _prepare(database)
    async with serving(database, tmp_path / "data") as client:
        await _offered(Shell(tmp_path, {"COLLECTOR_URL": str(client.session._base_url)}), job_id)


async def test_where_no_collector_runs_nothing_is_offered_and_nothing_started(
    tmp_path: Path,
) -> None:
    nowhere = {"COLLECTOR_MONGO_URI": "mongodb://127.0.0.1:9/"}
    for env in ({}, nowhere, {"COLLECTOR_URL": "http://127.0.0.1:9"}, {"COLLECTOR_URL": "x"}):
        shell = Shell(tmp_path, env)
        assert await shell.offers("collector read simulated B") == []
        assert await shell.offers("collector job pause 6") == []
    assert list(tmp_path.iterdir()) == []
    assert "binance" in await shell.offers("collector read bina")
    assert "15m" in await shell.offers("collector read binance BTC/USDT 1")
