"""Counts for `collector status` and `collector watch`, by four cheap queries."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.jobs.counting import JobCounting
from collector.jobs.history import HistoryProgress, history
from collector.jobs.lag import reached
from collector.jobs.live_workers import LiveWorkers
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.connectors.connector import Connector
    from collector.mongo.client import Database


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of an exchange's series that is furthest behind, in closed bars not stored yet."""

    bars: int
    timeframe: str
    unconfirmed: int = 0
    """Series whose newest slots the exchange reports as empty; they are asked about again, and are
    not behind."""


@dataclass(frozen=True, slots=True)
class Census:
    """All counts at one moment."""

    at_ms: int
    connectors: Sequence[Connector]
    states: Mapping[str, Counter[str]]
    """Per exchange, how many jobs are in each state; `paused` are those an operator stopped."""
    lags: Mapping[str, Lag]
    history: HistoryProgress
    workers: Sequence[Mapping[str, Any]]

    @property
    def total(self) -> Counter[str]:
        return sum(self.states.values(), Counter())


async def census(database: Database) -> Census:
    """Counts once."""
    connectors = await ConnectorRegistry(database).all()
    now_ms = database.server_clock.now_ms()
    return Census(
        at_ms=now_ms,
        connectors=connectors,
        states=await job_states(database),
        lags=await _lags(database, now_ms),
        history=await history(database),
        workers=await LiveWorkers(database).all(),
    )


async def job_states(database: Database) -> dict[str, Counter[str]]:
    """Per exchange, how many jobs are in each state."""
    found: dict[str, Counter[str]] = {}
    for each in await JobCounting(database).count():
        name = state_name(each.status, each.state)
        found.setdefault(each.exchange_id, Counter())[name] += each.count
    return found


def state_name(status: str, state: str) -> str:
    """One word for the pair: a stopped job is `paused` unless it had ended by itself."""
    return state if status == "active" or state in ("success", "failed") else status


async def _lags(database: Database, now_ms: int) -> dict[str, Lag]:
    found: dict[str, list[Lag]] = {}
    for each in await reached(database):
        lag = lag_of(each.timeframe, each.since_ms, now_ms, each.exchange_id)
        lag = replace(lag, unconfirmed=len(each.unconfirmed))
        found.setdefault(each.exchange_id, []).append(lag)
    return {
        exchange_id: replace(furthest(lags), unconfirmed=sum(each.unconfirmed for each in lags))
        for exchange_id, lags in found.items()
    }


def furthest(lags: Iterable[Lag]) -> Lag:
    """The one of most bars; of several the one of the longest."""
    return max(lags, key=lambda each: (each.bars, Timeframe.parse(each.timeframe).ms))


def lag_of(timeframe: str, since_ms: int, now_ms: int, exchange_id: str = "") -> Lag:
    """How many bars have closed since `since_ms`, up to which everything is stored."""
    frame = Timeframe.parse(timeframe).at(exchange_id)
    return Lag(max(0, frame.count(since_ms, frame.floor(now_ms))), frame.name)
