"""The state of the fleet for `collector status` and `/status`: the last count of jobs (see
jobs/counting.py), and connectors and workers as they are now.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.jobs.live_workers import LiveWorkers
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.connectors.connector import Connector
    from collector.jobs.counting import Counts
    from collector.mongo.client import Database

_BACKFILLED = ("jobs", "done", "bars", "bars_in_all")


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
    """The state of the fleet at one moment."""

    at_ms: int
    counts: Counts
    connectors: Sequence[Connector]
    workers: Sequence[Mapping[str, Any]]

    @property
    def states(self) -> dict[str, Counter[str]]:
        """Per exchange, how many jobs are in each state; `paused` are those an operator stopped."""
        found: dict[str, Counter[str]] = {}
        for each in self.counts.jobs:
            name = state_name(each.status, each.state)
            found.setdefault(each.exchange_id, Counter())[name] += each.count
        return found

    @property
    def total(self) -> Counter[str]:
        return sum(self.states.values(), Counter())

    @property
    def lags(self) -> dict[str, Lag]:
        """Per exchange, the lag when the jobs were counted."""
        found: dict[str, list[Lag]] = {}
        for each in self.counts.reached:
            lag = lag_of(each.timeframe, each.since_ms, self.counts.counted_ms, each.exchange_id)
            found.setdefault(each.exchange_id, []).append(
                replace(lag, unconfirmed=each.unconfirmed)
            )
        return {
            exchange_id: replace(furthest(lags), unconfirmed=sum(each.unconfirmed for each in lags))
            for exchange_id, lags in found.items()
        }

    @property
    def backfilled(self) -> dict[str, int]:
        """All backfills together."""
        return {
            name: sum(getattr(each, name) for each in self.counts.backfills) for name in _BACKFILLED
        }


async def census(database: Database, counts: Counts) -> Census:
    """Reads what is not counted: its cost does not depend on the number of jobs."""
    return Census(
        at_ms=await database.now_ms(),
        counts=counts,
        connectors=await ConnectorRegistry(database).all(),
        workers=await LiveWorkers(database).all(),
    )


def state_name(status: str, state: str) -> str:
    """One word for the pair: a stopped job is `paused` unless it had ended by itself."""
    return state if status == "active" or state in ("success", "failed") else status


def furthest(lags: Iterable[Lag]) -> Lag:
    """The one of most bars; of several the one of the longest."""
    return max(lags, key=lambda each: (each.bars, Timeframe.parse(each.timeframe).ms))


def lag_of(timeframe: str, since_ms: int, now_ms: int, exchange_id: str = "") -> Lag:
    """How many bars have closed since `since_ms`, up to which everything is stored."""
    frame = Timeframe.parse(timeframe).at(exchange_id)
    return Lag(max(0, frame.count(since_ms, frame.floor(now_ms))), frame.name)
