"""Many jobs, multiplied inside mongod from a few that JobQueue made, and what they cost it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pymongo

from collector.jobs.job import JobSpec
from collector.jobs.lease_statements import LEASE_INDEX, due_filter
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from migrations import runner

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document

TYPES = ("gap_backfill", "ohlcv_incremental", "ohlcv_backfill")
HOUR_MS = 3_600_000
BLOCK = 1_000
LOAD_SECONDS = 300


async def load(database: Database, jobs: int, exchange_of: Any, *, resting: str = "") -> None:
    """Fills an empty, unmigrated database and then migrates it, which is the quickest order.

    Half of the jobs became due in the last hour, half will in the one after next, in every type
    and priority; of the exchange `resting` none is due. `exchange_of` names a job's exchange, as an
    expression on its number `$n`.
    """
    queue = JobQueue(database)
    for job_type in TYPES:
        await queue.add(JobSpec("prototype", job_type, symbol="X/USDT", timeframe="1m"))
    blocks = -(-jobs // (BLOCK * len(TYPES)))
    number = {"$toString": "$n"}
    away_ms = {"$toLong": {"$multiply": [{"$rand": {}}, HOUR_MS]}}
    ahead_ms = {"$add": [HOUR_MS, away_ms]}
    due = {"$and": [{"$ne": ["$exchange_id", resting]}, {"$lt": [{"$rand": {}}, 0.5]}]}
    copies: list[Document] = [
        {"$set": {"n": {"$indexOfArray": [list(TYPES), "$type"]}}},
        *_repeat(len(TYPES) * BLOCK, blocks),
        *_repeat(len(TYPES), BLOCK),
        {"$match": {"n": {"$lt": jobs}}},
        {"$set": {"exchange_id": exchange_of}},
        {"$set": {"away_ms": {"$cond": [due, {"$multiply": [-1, away_ms]}, ahead_ms]}}},
        {
            "$set": {
                "symbol": {"$concat": ["C", number, "/USDT"]},
                "unique_key": {"$concat": ["$exchange_id", "|", "$type", "|C", number, "/USDT|1m"]},
                "next_run_at": {"$add": ["$next_run_at", "$away_ms"]},
                "state": {
                    "$cond": [{"$lt": ["$away_ms", 0]}, State.QUEUED.value, State.IDLE.value]
                },
            }
        },
        {"$unset": ["_id", "n", "away_ms"]},
        {"$out": database.jobs.name},
    ]
    # A million jobs and their indexes take longer than the client waits for an answer.
    with pymongo.timeout(LOAD_SECONDS):
        await database.raw[database.jobs.name].aggregate(copies)
        await runner.up(database)
    # What was just loaded is written to disk now and not during the measurement.
    await database.raw.client.admin.command("fsync")


async def keys_examined(database: Database, exchange_id: str) -> int:
    """Index keys that finding the next job of an exchange looks at."""
    explained = await database.raw.command(
        {
            "explain": {
                "find": database.jobs.name,
                "filter": due_filter(exchange_id),
                "sort": {"priority": 1, "next_run_at": 1},
                "hint": LEASE_INDEX,
                "limit": 1,
            },
            "verbosity": "executionStats",
        }
    )
    keys: int = explained["executionStats"]["totalKeysExamined"]
    return keys


async def server_cpu_ms(database: Database) -> float:
    """Processor time that mongod has used since it started."""
    status = await database.raw.command("serverStatus")
    used: Document = status["extra_info"]
    return float(used["user_time_us"] + used["system_time_us"]) / 1000


def _repeat(step: int, times: int) -> list[Document]:
    """Every document `times` times, its number growing by `step`."""
    last = {"$add": ["$n", step * times]}
    return [{"$set": {"n": {"$range": ["$n", last, step]}}}, {"$unwind": "$n"}]
