"""Pages of stored series, and the threads that read them for reports.

A report reads whole files. It does so in threads of its own, few of them: any number of concurrent
reports neither blocks the event loop nor keeps other requests from the disk.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from api.problems import Refusal
from collector.errors import InvalidInput
from collector.market.letters import fits
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.operations.connectors import check_exchange
from collector.pipeline.resample import divides
from collector.reports.ledgers import ledgers

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.deps import Services
    from api.schemas.coverage_days import DaysAsked
    from api.schemas.missing_ranges import RangesAsked
    from api.schemas.reports import SeriesAsked
    from collector.reports.ledgers import SeriesLedger
    from collector.store.store import Store

T = TypeVar("T")

_READERS = ThreadPoolExecutor(2, thread_name_prefix="reports")
MOST_AT_ONCE = 8
"""Reports that may be under way or wait for a thread; the next one is put off."""
_WAIT_SECONDS = 5
_under_way = 0


async def in_reader(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Runs it in one of the threads of reports. A Refusal with 503 when too many wait for one."""
    global _under_way
    if _under_way >= MOST_AT_ONCE:
        raise Refusal(
            503,
            "reports_busy",
            f"{MOST_AT_ONCE} reports are being made already",
            headers={"Retry-After": str(_WAIT_SECONDS)},
        )
    work = partial(function, *arguments, **named)
    _under_way += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_READERS, work)
    finally:
        _under_way -= 1


def check_names(exchange_id: str | None, timeframe: str | None) -> None:
    """Refuses an exchange or a timeframe that cannot exist, where one was named."""
    if exchange_id is not None:
        check_exchange(exchange_id)
    if timeframe is not None:
        try:
            Timeframe.parse(timeframe)
        except ValueError as error:
            raise InvalidInput("timeframe", "unknown_timeframe", str(error)) from error


async def series_page(parts: Services, asked: SeriesAsked) -> tuple[list[Series], str | None]:
    """The stored series that are meant, by exchange, symbol and timeframe, and the next cursor."""
    check_names(asked.exchange_id, asked.timeframe)
    found = await in_reader(_meant, parts.store, asked)
    after = None if asked.cursor is None else _place(asked.cursor)
    rest = [each for each in found if after is None or _key(each) > after]
    page = rest[: asked.limit]
    more = len(rest) > len(page)
    return page, _cursor(page[-1]) if more else None


async def ledger_page(parts: Services, asked: DaysAsked) -> tuple[list[SeriesLedger], str | None]:
    """The collected series that are meant, with what is covered of each, and the next cursor."""
    check_names(asked.exchange_id, asked.timeframe)
    after = None if asked.cursor is None else _place(asked.cursor)
    found = await in_reader(_ledgers, parts.store, asked, after, asked.limit + 1)
    page = found[: asked.limit]
    return page, _cursor(page[-1].series) if len(found) > len(page) else None


async def all_ledgers(parts: Services, asked: DaysAsked | RangesAsked) -> list[SeriesLedger]:
    """All collected series that are meant."""
    check_names(asked.exchange_id, asked.timeframe)
    return await in_reader(_ledgers, parts.store, asked, None, None)


def _ledgers(
    store: Store,
    asked: DaysAsked | RangesAsked,
    after: tuple[str, str, Timeframe] | None,
    most: int | None,
) -> list[SeriesLedger]:
    """Looks at whole markets, whose shorter bars may cover longer ones."""
    markets = [
        each
        for each in store.series(asked.exchange_id)
        if (asked.symbol is None or each.symbol == asked.symbol)
        and (after is None or (each.exchange_id, each.symbol) >= after[:2])
        and fits(asked.search, each.symbol)
    ]
    wanted = None if asked.timeframe is None else Timeframe.parse(asked.timeframe)
    found = (
        each
        for each in ledgers(store, markets)
        if (after is None or _key(each.series) > after)
        and (wanted is None or each.series.timeframe == wanted)
    )
    return list(islice(found, most))


def _meant(store: Store, asked: SeriesAsked) -> list[Series]:
    stored = [
        each
        for each in store.series(asked.exchange_id)
        if (asked.symbol is None or each.symbol == asked.symbol) and fits(asked.search, each.symbol)
    ]
    if asked.timeframe is None:
        return sorted(stored, key=_key)
    wanted = Timeframe.parse(asked.timeframe)
    # What has shorter bars has longer ones: they are made of them.
    named = {
        Series(each.exchange_id, each.symbol, wanted)
        for each in stored
        if divides(each.timeframe, wanted.at(each.exchange_id))
    }
    return sorted(named, key=_key)


def _key(series: Series) -> tuple[str, str, Timeframe]:
    return series.exchange_id, series.symbol, series.timeframe


def _cursor(series: Series) -> str:
    return f"{series.exchange_id}|{series.timeframe}|{series.symbol}"


def _place(cursor: str) -> tuple[str, str, Timeframe]:
    exchange_id, _, rest = cursor.partition("|")
    timeframe, _, symbol = rest.partition("|")
    try:
        return exchange_id, symbol, Timeframe.parse(timeframe)
    except ValueError:
        raise InvalidInput("cursor", "bad_cursor", "no answer ever had this cursor") from None
