"""Reports on stored series by the page: how much is there, what is lacking, whether it is sound.

A report reads whole files. The caller decides in which threads, and may end one early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from collector.errors import InvalidInput
from collector.market.letters import fits
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.operations.connectors import check_exchange
from collector.operations.market_names import known_timeframe
from collector.operations.stored_symbol import stored_symbol
from collector.pipeline.resample import divides
from collector.reports.coverage import Coverage, coverage
from collector.reports.expected import Expected
from collector.reports.gap_rule import measured, within_limit
from collector.reports.missing import MissingReport
from collector.reports.validation import Demands, inspect
from collector.reports.validation_report import ValidationReport

if TYPE_CHECKING:
    from collector.store.store import Store

Expecting = Callable[[Sequence[Series], int], Awaitable[Mapping[Series, Expected]]]
"""What is expected of series at a moment."""
Reading = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that waits for the disk."""


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """Which stored series; all of them by default."""

    exchange_id: str | None = None
    symbol: str | None = None
    timeframe: str | None = None
    search: str = ""
    """Letters of the symbol."""
    limit: int = 20
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class SeriesReports:
    """Reports on one lake. `on_rows` is told of every piece that was read and may raise."""

    store: Store
    expecting: Expecting
    demands: Demands
    now_ms: int
    reading: Reading = asyncio.to_thread
    on_rows: Callable[[int], None] | None = None

    async def coverage(self, asked: SeriesFilter) -> dict[str, Any]:
        """Per series: slots expected, present, without a trade, missing and unconfirmed."""
        counted, more = await self._counted(asked)
        for each in counted:
            measured(each)
        items = [shown_coverage(each) for each in counted]
        return {"generated_at": self._date, "items": items, "next_cursor": more}

    async def missing(self, asked: SeriesFilter) -> dict[str, Any]:
        """The rows of missing.csv, the worst stretches, and what to do about them."""
        counted, more = await self._counted(asked)
        for each in counted:
            within_limit(each, self.demands.max_gap_pct)
        report = MissingReport(counted, self.demands.max_gap_pct)
        facts = {"items": report.rows(), "next_cursor": more, "summary": report.summary()}
        return {"generated_at": self._date, **facts}

    async def validation(self, asked: SeriesFilter) -> dict[str, Any]:
        """Every check of `datalayer validate` that needs no exchange."""
        page, expected, more = await self._page(asked)
        demands = replace(self.demands, samples=0)
        reports = [
            await self.reading(
                partial(
                    inspect,
                    self.store,
                    series,
                    demands,
                    expected[series],
                    now_ms=self.now_ms,
                    on_rows=self.on_rows,
                )
            )
            for series in page
        ]
        document = ValidationReport(self.now_ms, reports, demands).document()
        facts = {name: document[name] for name in ("generated_at", "build_signature", "summary")}
        return {**facts, "items": document["series"], "next_cursor": more}

    async def _counted(self, asked: SeriesFilter) -> tuple[list[Coverage], str | None]:
        page, expected, more = await self._page(asked)
        counted = [
            await self.reading(
                partial(coverage, self.store, series, expected[series], self.on_rows)
            )
            for series in page
        ]
        return counted, more

    async def _page(
        self, asked: SeriesFilter
    ) -> tuple[list[Series], Mapping[Series, Expected], str | None]:
        page, more = await self.reading(partial(page_of_series, self.store, asked))
        return page, await self.expecting(page, self.now_ms), more

    @property
    def _date(self) -> str:
        made = datetime.fromtimestamp(self.now_ms / 1000, UTC)
        return made.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown_coverage(counted: Coverage) -> dict[str, Any]:
    """How much of one series is stored, as front ends show it."""
    names = ("first_ts", "last_ts", "expected", "present", "no_trade", "missing")
    more = ("longest_gap_bars", "lag_bars", "partial", "head_missing", "tail_missing")
    return {
        "exchange_id": counted.series.exchange_id,
        "symbol": counted.series.symbol,
        "timeframe": counted.series.timeframe.name,
        **{name: getattr(counted, name) for name in (*names, *more)},
        "gaps_pct": counted.gaps_pct,
        "unconfirmed": counted.unconfirmed,
    }


def check_names(exchange_id: str | None, timeframe: str | None) -> None:
    """Refuses an exchange or a timeframe that cannot exist, where one was named."""
    if exchange_id is not None:
        check_exchange(exchange_id)
    if timeframe is not None:
        known_timeframe(timeframe)


def page_of_series(store: Store, asked: SeriesFilter) -> tuple[list[Series], str | None]:
    """The stored series that are meant, by exchange, symbol and timeframe, and the next cursor."""
    check_names(asked.exchange_id, asked.timeframe)
    after = None if asked.cursor is None else place_of(asked.cursor)
    rest = [each for each in _meant(store, asked) if after is None or key_of(each) > after]
    page = rest[: asked.limit]
    return page, cursor_of(page[-1]) if len(rest) > len(page) else None


def _meant(store: Store, asked: SeriesFilter) -> list[Series]:
    everything, symbol = store.series(asked.exchange_id), asked.symbol
    if symbol is not None:
        symbol = stored_symbol(store, asked.exchange_id, symbol)
    stored = [
        each
        for each in everything
        if (symbol is None or each.symbol == symbol) and fits(asked.search, each.symbol)
    ]
    if asked.timeframe is None:
        return sorted(stored, key=key_of)
    wanted = Timeframe.parse(asked.timeframe)
    # What has shorter bars has longer ones: they are made of them.
    named = {
        Series(each.exchange_id, each.symbol, wanted)
        for each in stored
        if divides(each.timeframe, wanted.at(each.exchange_id))
    }
    return sorted(named, key=key_of)


def key_of(series: Series) -> tuple[str, str, Timeframe]:
    return series.exchange_id, series.symbol, series.timeframe


def cursor_of(series: Series) -> str:
    return f"{series.exchange_id}|{series.timeframe}|{series.symbol}"


def place_of(cursor: str) -> tuple[str, str, Timeframe]:
    exchange_id, _, rest = cursor.partition("|")
    timeframe, _, symbol = rest.partition("|")
    try:
        return exchange_id, symbol, Timeframe.parse(timeframe)
    except ValueError:
        raise InvalidInput("cursor", "bad_cursor", "no answer ever had this cursor") from None
