"""What each day of stored series lacks, in requests and answers."""

from typing import Self

from pydantic import BaseModel, Field

from api.schemas.fields import Moment
from api.schemas.reports import SeriesAsked
from collector.durations import DAY_MS
from collector.errors import InvalidInput
from collector.market.interval import Interval
from collector.reports.coverage_days import CoverageDays

MOST_DAYS = 400


class DaysAsked(SeriesAsked):
    """Which series and which days; the last 90 by default."""

    start: Moment | None = Field(default=None, description="The first day, in UTC")
    end: Moment | None = Field(default=None, description="Up to this day; default: today and it")

    def days(self, now_ms: int, usual: int = 90) -> Interval:
        """Whole days. InvalidInput for none, or too many."""
        end = (now_ms if self.end is None else self.end - 1) // DAY_MS * DAY_MS + DAY_MS
        start = end - usual * DAY_MS if self.start is None else self.start // DAY_MS * DAY_MS
        if end <= start:
            raise InvalidInput("end", "end_before_start", "end must be after start")
        if end - start > MOST_DAYS * DAY_MS:
            reason = f"a page has at most {MOST_DAYS} days"
            raise InvalidInput("start", "too_long", reason)
        return Interval(start, end)


class DaysView(BaseModel):
    """One series. Each list has one entry for each day of the page."""

    exchange_id: str = Field(description="ccxt's id")
    symbol: str = Field(description="As ccxt writes it")
    timeframe: str = Field(description="How long its bars are")
    damaged: bool = Field(description="A file cannot be read: nothing is known about the days")
    expected: list[int] = Field(description="Bars that should open on each day")
    missing: list[int] = Field(description="Of these, those that no answer covers")
    unconfirmed: list[int] = Field(
        description="Of these, those that the exchange reported as empty and is asked about again; "
        "they are not among the missing ones"
    )

    @classmethod
    def of(cls, days: CoverageDays, *, damaged: bool) -> Self:
        return cls(
            exchange_id=days.series.exchange_id,
            symbol=days.series.symbol,
            timeframe=days.series.timeframe.name,
            damaged=damaged,
            expected=list(days.expected),
            missing=list(days.missing),
            unconfirmed=list(days.unconfirmed),
        )


class DaysPage(BaseModel):
    """By exchange, symbol and timeframe."""

    start: int = Field(description="Midnight of the first day, in epoch ms")
    end: int = Field(description="Midnight after the last day")
    items: list[DaysView] = Field(description="By exchange, symbol and timeframe")
    next_cursor: str | None = Field(description="For the next page; null on the last")
