"""Pages of stored series, and the threads that read them for reports.

A report reads whole files. It does so in threads of its own, few of them: any number of reports
that are asked for together neither stops the event loop nor keeps other requests from the disk.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from api.problems import unprocessable
from collector.market.series import Series
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.deps import Services
    from api.schemas.reports import SeriesAsked
    from collector.store.store import Store

T = TypeVar("T")

_READERS = ThreadPoolExecutor(2, thread_name_prefix="reports")
_MINUTE = Timeframe.parse("1m")


async def in_reader(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Runs it in one of the threads of reports."""
    work = partial(function, *arguments, **named)
    return await asyncio.get_running_loop().run_in_executor(_READERS, work)


async def series_page(parts: Services, asked: SeriesAsked) -> tuple[list[Series], str | None]:
    """The stored series that are meant, by exchange, symbol and timeframe, and the next cursor."""
    if asked.exchange_id is not None:
        parts.desk.check_exchange(asked.exchange_id)
    if asked.timeframe is not None:
        try:
            Timeframe.parse(asked.timeframe)
        except ValueError as error:
            raise unprocessable("timeframe", "unknown_timeframe", str(error)) from error
    found = await in_reader(_meant, parts.store, asked)
    after = None if asked.cursor is None else _place(asked.cursor)
    rest = [each for each in found if after is None or _key(each) > after]
    page = rest[: asked.limit]
    more = len(rest) > len(page)
    return page, _cursor(page[-1]) if more else None


def _meant(store: Store, asked: SeriesAsked) -> list[Series]:
    stored = [
        each
        for each in store.series(asked.exchange_id)
        if asked.symbol is None or each.symbol == asked.symbol
    ]
    if asked.timeframe is None:
        return sorted(stored, key=_key)
    wanted = Timeframe.parse(asked.timeframe)
    # Whatever has minutes has every longer timeframe: it is made of them.
    longer = wanted.ms % _MINUTE.ms == 0
    made = (each for each in stored if each.timeframe == _MINUTE and longer)
    named = [each for each in stored if each.timeframe == wanted]
    named += [Series(each.exchange_id, each.symbol, wanted) for each in made]
    return sorted(set(named), key=_key)


def _key(series: Series) -> tuple[str, str, int]:
    return series.exchange_id, series.symbol, series.timeframe.ms


def _cursor(series: Series) -> str:
    return f"{series.exchange_id}|{series.timeframe}|{series.symbol}"


def _place(cursor: str) -> tuple[str, str, int]:
    exchange_id, _, rest = cursor.partition("|")
    timeframe, _, symbol = rest.partition("|")
    try:
        return exchange_id, symbol, Timeframe.parse(timeframe).ms
    except ValueError:
        raise unprocessable("cursor", "bad_cursor", "no answer ever had this cursor") from None
