"""One change to many jobs, over REST and by the command line's use case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from bson import ObjectId

from collector.cli.actions.named_job import job_ids
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.errors import InvalidInput, NotFound
from collector.fleet.opening import local_fleet
from collector.jobs.job import JobSpec
from collector.jobs.list_filters import states_of
from collector.jobs.queue import JobQueue
from collector.operations.bulk_jobs import change_many
from collector.settings import Settings
from tests.support.local_api import serving

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database

BACKFILL, INCREMENTAL = "ohlcv_backfill", "ohlcv_incremental"


async def _jobs(database: Database) -> dict[str, Job]:
    """Two exchanges; of the first one backfill is finished and one job has failed."""
    queue, found = JobQueue(database), {}
    for exchange in ("simulated", "binance"):
        await ConnectorRegistry(database).ensure(exchange, Limits(10, 1000))
        for symbol in ("BTC/USDT", "ETH/USDT"):
            for kind in (BACKFILL, INCREMENTAL):
                job, _ = await queue.add(JobSpec(exchange, kind, symbol, "1m"))
                found[f"{exchange} {symbol} {kind}"] = job
    finished = found[f"simulated BTC/USDT {BACKFILL}"].id
    failed = found[f"simulated ETH/USDT {BACKFILL}"].id
    settled = {"status": "paused", "state": "success", "cursor.done": True}
    await database.jobs.update_one({"_id": finished}, {"$set": settled})
    await database.jobs.update_one(
        {"_id": failed}, {"$set": {"status": "paused", "state": "failed"}}
    )
    return found


async def _in(database: Database, *words: str) -> int:
    return len(await JobQueue(database).find({"state": words}))


async def test_a_finished_backfill_is_never_caught(database: Database) -> None:
    jobs = await _jobs(database)
    finished = jobs[f"simulated BTC/USDT {BACKFILL}"].id
    for verb in ("pause", "resume", "run", "remove"):
        await change_many(database, verb, {}, every=True)
        after = await JobQueue(database).get(finished)
        assert (after.status.value, after.state.value) == ("paused", "success")


async def test_counts_are_of_what_matched_and_of_what_is_different_now(database: Database) -> None:
    await _jobs(database)
    first = await change_many(database, "pause", {"exchange_id": "simulated"}, every=False)
    assert (first.matched, first.changed) == (3, 2)
    again = await change_many(database, "pause", {"exchange_id": "simulated"}, every=False)
    assert (again.matched, again.changed) == (3, 0)
    assert (await _in(database, "done"), await _in(database, "failed")) == (1, 1)
    assert await _in(database, "paused") == 2
    assert await _in(database, "paused", "failed", "done") == 4
    resumed = await change_many(database, "resume", {"state": "paused"}, every=False)
    assert (resumed.matched, resumed.changed) == (2, 2)
    assert (await _in(database, "paused"), await _in(database, "failed")) == (0, 1)


async def test_all_must_be_said(database: Database) -> None:
    with pytest.raises(InvalidInput, match="all are meant"):
        await change_many(database, "remove", {}, every=False)


def test_words_of_states_add_up() -> None:
    both = states_of(["running", "paused"])
    assert both["running"] == ["active", "paused"]
    assert both["idle"] == ["paused"]


async def test_rest_takes_a_filter_and_answers_counts(database: Database, tmp_path: Path) -> None:
    await _jobs(database)
    async with serving(database, tmp_path) as client:
        asked = {"filter": {"exchange_id": ["simulated", "binance"], "type": INCREMENTAL}}
        answer = await client.post("/api/v1/jobs/pause", asked)
        assert (answer.status, answer.body) == (200, {"matched": 4, "changed": 4, "refused": []})
        assert (await client.post("/api/v1/jobs/run", {"filter": {}})).code == "no_filter"
        wrong = await client.post("/api/v1/jobs/run", {"filter": {"exchnage": "x"}})
        assert wrong.status == 422
        listed = await client.get("/api/v1/jobs?state=paused&state=done&exchange_id=simulated")
        assert len(listed.body["items"]) == 3
        removed = await client.post("/api/v1/jobs/remove", {"filter": {"all": True}})
        assert removed.body["changed"] == 7


async def test_a_job_is_named_by_the_beginning_of_its_id_or_by_what_it_is(
    database: Database,
) -> None:
    jobs = await _jobs(database)
    fleet = local_fleet(database, Settings())
    wanted = str(jobs[f"binance ETH/USDT {INCREMENTAL}"].id)
    described = ["binance", "ETH/USDT", "1m", INCREMENTAL]
    assert await job_ids(fleet, described) == [wanted]
    other = jobs[f"binance BTC/USDT {BACKFILL}"].id
    stored = database.raw["jobs"]
    document = await stored.find_one_and_delete({"_id": other})
    await stored.insert_one({**document, "_id": ObjectId("abcd" * 6)})
    again = {**document, "_id": ObjectId("abcdb".ljust(24, "0")), "unique_key": "another"}
    await stored.insert_one(again)
    assert await job_ids(fleet, ["abcda", wanted]) == ["abcd" * 6, wanted]
    with pytest.raises(InvalidInput, match="several jobs are of binance ETH/USDT"):
        await job_ids(fleet, ["binance", "ETH/USDT"])
    with pytest.raises(InvalidInput, match="several ids begin"):
        await job_ids(fleet, ["abcd"])
    with pytest.raises(NotFound):
        await job_ids(fleet, ["binance", "XRP/USDT"])


async def test_an_empty_list_of_values_is_refused(database: Database, tmp_path: Path) -> None:
    async with serving(database, tmp_path) as client:
        refused = await client.post("/api/v1/jobs/pause", {"filter": {"all": True, "state": []}})
        assert (refused.status, refused.code) == (422, "invalid_request")
        wrong = await client("OPTIONS", "/api/v1/jobs/pause")
        assert (wrong.status, wrong.headers["Allow"]) == (405, "POST")


async def test_a_dry_run_counts_and_changes_nothing(database: Database, tmp_path: Path) -> None:
    jobs = await _jobs(database)
    chosen = [str(jobs[f"binance ETH/USDT {INCREMENTAL}"].id), "f" * 24]
    async with serving(database, tmp_path) as client:
        for asked, matched in (
            ({"exchange_id": "simulated"}, 3),
            ({"search": "ethusdt"}, len([name for name in jobs if "ETH" in name])),
            ({"id": chosen}, 1),
        ):
            body = {"filter": asked, "dry_run": True}
            answer = await client.post("/api/v1/jobs/remove", body)
            assert answer.body == {"matched": matched, "changed": matched, "refused": []}
        assert await _in(database, "paused") == 0
        real = await client.post("/api/v1/jobs/pause", {"filter": {"id": chosen}})
        assert real.body["changed"] == 1
        assert await _in(database, "paused") == 1
