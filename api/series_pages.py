"""Collected series with what is covered of each, by the page or all of them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from api.reader_threads import in_reader
from collector.market.letters import fits
from collector.market.timeframe import Timeframe
from collector.operations.series_reports import check_names, cursor_of, key_of, place_of
from collector.operations.stored_symbol import stored_symbol
from collector.reports.ledgers import ledgers

if TYPE_CHECKING:
    from api.deps import Services
    from api.schemas.coverage_days import DaysAsked
    from api.schemas.missing_ranges import RangesAsked
    from collector.reports.ledgers import SeriesLedger
    from collector.store.store import Store


async def ledger_page(parts: Services, asked: DaysAsked) -> tuple[list[SeriesLedger], str | None]:
    """The collected series that are meant, with what is covered of each, and the next cursor."""
    check_names(asked.exchange_id, asked.timeframe)
    after = None if asked.cursor is None else place_of(asked.cursor)
    found = await in_reader(_ledgers, parts.store, asked, after, asked.limit + 1)
    page = found[: asked.limit]
    return page, cursor_of(page[-1].series) if len(found) > len(page) else None


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
    symbol = asked.symbol and stored_symbol(store, asked.exchange_id, asked.symbol)
    markets = [
        each
        for each in store.series(asked.exchange_id)
        if (symbol is None or each.symbol == symbol)
        and (after is None or (each.exchange_id, each.symbol) >= after[:2])
        and fits(asked.search, each.symbol)
    ]
    wanted = None if asked.timeframe is None else Timeframe.parse(asked.timeframe)
    found = (
        each
        for each in ledgers(store, markets)
        if (after is None or key_of(each.series) > after)
        and (wanted is None or each.series.timeframe == wanted)
    )
    return list(islice(found, most))
