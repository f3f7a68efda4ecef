"""FXCM's history as a page of bars: bid in o, h, l, c, ask in the further columns. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from collector.durations import DAY_MS
from collector.errors import BadRequest
from collector.exchanges.fxcm.bars import TIMEFRAMES
from collector.market.answer import Answer, Question
from collector.market.bar_rows import BarRows
from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from collector.exchanges.fxcm.bars import BidAskBars
    from collector.market.calendar.calendar import Calendar
    from collector.market.timeframe import Timeframe

_LONGEST_CLOSED_MS = 3 * DAY_MS


def _our_name(name: str) -> str:
    """`m1` is `1m` here, `H4` is `4h`; a month's M stays a capital."""
    unit = name[0] if name[0] in "mM" else name[0].lower()
    return f"{name[1:]}{unit}"


SDK_NAMES: Mapping[str, str] = MappingProxyType({_our_name(name): name for name in TIMEFRAMES})
"""FXCM's name of each timeframe, by ours."""


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    """One request for bars: at most `limit` that open from `since_ms` on."""

    timeframe: Timeframe
    since_ms: int
    limit: int

    @property
    def sdk_name(self) -> str:
        name = SDK_NAMES.get(self.timeframe.name)
        if name is None:
            served = ", ".join(SDK_NAMES)
            raise BadRequest(f"fxcm serves no {self.timeframe} bars; it serves {served}")
        return name

    @property
    def end_ms(self) -> int:
        """Where the bar behind the window opens."""
        return self.timeframe.shift(self.since_ms, self.limit)

    @property
    def from_ms(self) -> int:
        """The start of the request: a long bar may be dated into the closed time before it."""
        early = _LONGEST_CLOSED_MS if self.timeframe.ms > DAY_MS else 0
        return max(0, self.since_ms - early)

    @property
    def to_ms(self) -> int:
        """The last requested second: the server includes the bar that begins there."""
        return self.end_ms - 1000

    @property
    def question(self) -> Question:
        return Question(self.timeframe, self.since_ms, self.end_ms, self.limit)

    def answer(self, bars: BidAskBars, calendar: Calendar) -> Answer:
        """The answer. A running bar is among its rows; the server's clock is not reported."""
        ts = _opens(bars.time_ms, self.timeframe, calendar)
        order = np.argsort(ts, kind="stable")
        rows = _rows(ts[order], bars, order)
        return Answer(self.question, rows, full=len(rows) >= self.limit)

    def nothing(self) -> Answer:
        """The server reports that it has no bars there."""
        return Answer(self.question, full=False)


def _opens(dated: NDArray[np.int64], timeframe: Timeframe, calendar: Calendar) -> NDArray[np.int64]:
    """When each bar opens. One that is dated into closed time opens with the market.

    FXCM dates a week by the Saturday before it. A date that is off in open time is left as it is,
    for the pipeline to refuse.
    """
    off = np.flatnonzero(timeframe.floors(dated) != dated)
    moved = dated.copy()
    for at in off.tolist():
        when = int(dated[at])
        opens_ms = calendar.next_open(when)
        if opens_ms is not None and opens_ms != when:
            moved[at] = timeframe.floor(opens_ms)
    return moved


def _rows(ts: NDArray[np.int64], bars: BidAskBars, chosen: NDArray[np.intp]) -> BarRows:
    bid = (bars.bid_open, bars.bid_high, bars.bid_low, bars.bid_close)
    ask = (bars.ask_open, bars.ask_high, bars.ask_low, bars.ask_close)
    unknown = np.full(len(ts), np.nan)
    columns = [ts, *(each[chosen] for each in (*bid, bars.volume)), unknown]
    table = np.column_stack([each.astype(np.float64) for each in columns])
    plain = np.isfinite(table[:, 1:6]).all(axis=1)
    names = ("ask_o", "ask_h", "ask_l", "ask_c")
    extra = {name: column[chosen][plain] for name, column in zip(names, ask, strict=True)}
    odd = tuple(tuple(row) for row in table[~plain, :6].tolist())
    return BarRows(CandleBatch.of_columns(table[plain]).with_extra(extra), odd)
