"""Counting: what `collector status` and `collector watch` show, in four cheap questions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.queue import JobQueue
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.connectors.connector import Connector
    from collector.mongo.client import Database

_LIVE = {"status": {"$in": ["active", "paused"]}}


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the series of an exchange that is furthest behind is: closed bars not stored yet."""

    bars: int
    timeframe: str


@dataclass(frozen=True, slots=True)
class History:
    """How much of the asked-for history is there."""

    jobs: int = 0
    done: int = 0
    bars: int = 0
    bars_in_all: int = 0

    @property
    def share(self) -> float:
        return self.bars / self.bars_in_all if self.bars_in_all else 0.0


@dataclass(frozen=True, slots=True)
class Census:
    """The whole of one moment."""

    at_ms: int
    connectors: Sequence[Connector]
    states: Mapping[str, Counter[str]]
    """Per exchange, how many jobs are in each state; `paused` are those an operator stopped."""
    lags: Mapping[str, Lag]
    history: History
    workers: Sequence[Mapping[str, Any]]

    @property
    def total(self) -> Counter[str]:
        return sum(self.states.values(), Counter())


async def census(database: Database) -> Census:
    """Looks once."""
    connectors = await ConnectorRegistry(database).all()
    now_ms = database.server_clock.now_ms()
    return Census(
        at_ms=now_ms,
        connectors=connectors,
        states=await job_states(database),
        lags=await _lags(database, now_ms),
        history=await _history(database),
        workers=await LiveWorkers(database).all(),
    )


async def job_states(database: Database) -> dict[str, Counter[str]]:
    """Per exchange, how many jobs are in each state."""
    key = {"exchange": "$exchange_id", "status": "$status", "state": "$state"}
    counted = await database.jobs.aggregate(
        [{"$match": _LIVE}, {"$group": {"_id": key, "n": {"$sum": 1}}}]
    )
    found: dict[str, Counter[str]] = {}
    for entry in counted:
        name = state_name(entry["_id"]["status"], entry["_id"]["state"])
        found.setdefault(entry["_id"]["exchange"], Counter())[name] += entry["n"]
    return found


def state_name(status: str, state: str) -> str:
    """One word for the pair: a job that was stopped is `paused` unless it had ended by itself."""
    return state if status == "active" or state in ("success", "failed") else status


async def _lags(database: Database, now_ms: int) -> dict[str, Lag]:
    found: dict[str, Lag] = {}
    for entry in await JobQueue(database).oldest_cursors("ohlcv_incremental"):
        lag = lag_of(entry["timeframe"], entry["since_ms"], now_ms)
        exchange = entry["exchange_id"]
        if exchange not in found or lag.bars > found[exchange].bars:
            found[exchange] = lag
    return found


def lag_of(timeframe: str, since_ms: int, now_ms: int) -> Lag:
    """How many bars have closed since `since_ms`, up to which everything is stored."""
    frame = Timeframe.parse(timeframe)
    return Lag(max(0, (frame.floor(now_ms) - since_ms) // frame.ms), frame.name)


async def _history(database: Database) -> History:
    gone = {"$subtract": ["$cursor.since_ms", "$progress.from_ms"]}
    asked = {"$subtract": ["$progress.until_ms", "$progress.from_ms"]}
    counted = await database.jobs.aggregate(
        [
            {"$match": {"type": "ohlcv_backfill", **_LIVE}},
            {
                "$group": {
                    "_id": "$timeframe",
                    "jobs": {"$sum": 1},
                    "done": {"$sum": {"$cond": ["$cursor.done", 1, 0]}},
                    "gone_ms": {"$sum": gone},
                    "asked_ms": {"$sum": asked},
                }
            },
        ]
    )
    steps = [Timeframe.parse(entry["_id"]).ms for entry in counted]
    return History(
        jobs=sum(entry["jobs"] for entry in counted),
        done=sum(entry["done"] for entry in counted),
        bars=sum(e["gone_ms"] // step for e, step in zip(counted, steps, strict=True)),
        bars_in_all=sum(e["asked_ms"] // step for e, step in zip(counted, steps, strict=True)),
    )
