"""Jobs by state and the lag of every exchange. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.jobs.list_filters import DONE
from collector.jobs.states import State
from collector.market.timeframe import Timeframe
from collector.operations.census import lag_of, state_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.jobs.counting import Counts


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


def exchange_figures(counts: Counts) -> list[ExchangeFigures]:
    """From one count, by name."""
    jobs: dict[str, Counter[str]] = {}
    for each in counts.jobs:
        name = _word(state_name(each.status, each.state), each.status)
        jobs.setdefault(each.exchange_id, Counter())[name] += each.count
    lags: dict[str, list[TimeframeLag]] = {}
    for found in counts.reached:
        lag = lag_of(found.timeframe, found.since_ms, counts.counted_ms, found.exchange_id)
        lags.setdefault(found.exchange_id, []).append(
            TimeframeLag(lag.timeframe, lag.bars, found.since_ms, found.unconfirmed)
        )
    return [
        ExchangeFigures(
            name,
            jobs.get(name, {}),
            sorted(lags.get(name, ()), key=lambda each: Timeframe.parse(each.timeframe)),
        )
        for name in sorted({*jobs, *lags})
    ]


def _word(state: str, status: str) -> str:
    """A success that has nothing left to do is called `done`, as in filters of lists."""
    return DONE if state == State.SUCCESS and status != "active" else state
