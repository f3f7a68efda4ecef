"""Jobs by state and the lag of every exchange: cheap enough to be asked for every few seconds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.jobs.counting import JobCounting
from collector.jobs.lag import reached
from collector.jobs.list_filters import DONE
from collector.jobs.states import State
from collector.market.timeframe import Timeframe
from collector.operations.census import lag_of, state_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.mongo.client import Database


@dataclass(frozen=True, slots=True)
class TimeframeLag:
    """The series of one timeframe that is furthest behind, in closed bars not stored yet."""

    timeframe: str
    bars: int
    since_ms: int
    unconfirmed: int
    """Series whose newest slots the exchange reports as empty; they are not behind."""


@dataclass(frozen=True, slots=True)
class ExchangeFigures:
    """One exchange, or one network (jobs/network.py)."""

    exchange_id: str
    jobs: Mapping[str, int] = field(default_factory=dict)
    lags: Sequence[TimeframeLag] = ()


@dataclass(frozen=True, slots=True)
class FleetFigures:
    """All of them at one moment, by name."""

    at_ms: int
    exchanges: Sequence[ExchangeFigures]


async def exchange_figures(database: Database) -> FleetFigures:
    """Reads the workers' last count of jobs, and one index key for each timeframe's lag."""
    jobs: dict[str, Counter[str]] = {}
    for each in await JobCounting(database).last():
        name = _word(state_name(each.status, each.state), each.status)
        jobs.setdefault(each.exchange_id, Counter())[name] += each.count
    now_ms = database.server_clock.now_ms()
    lags: dict[str, list[TimeframeLag]] = {}
    for found in await reached(database):
        lag = lag_of(found.timeframe, found.since_ms, now_ms, found.exchange_id)
        its = lags.setdefault(found.exchange_id, [])
        silent = len(found.unconfirmed)
        its.append(TimeframeLag(lag.timeframe, lag.bars, found.since_ms, silent))
    return FleetFigures(
        now_ms,
        [
            ExchangeFigures(
                name,
                jobs.get(name, {}),
                sorted(lags.get(name, ()), key=lambda each: Timeframe.parse(each.timeframe)),
            )
            for name in sorted({*jobs, *lags})
        ],
    )


def _word(state: str, status: str) -> str:
    """A success that has nothing left to do is called `done`, as in filters of lists."""
    return DONE if state == State.SUCCESS and status != "active" else state
