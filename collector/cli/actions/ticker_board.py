"""What `collector tickers` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli.database import opened
from collector.cli.moments import shown_age
from collector.cli.output import Output, number, table
from collector.errors import NotFound
from collector.market.near import did_you_mean
from collector.markets.book import MarketBook
from collector.markets.tickers import TickerBoard
from collector.operations.connectors import check_exchange

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from collector.cli.verb import Asked
    from collector.mongo.client import Database

_HEADINGS = ("symbol", "last", "bid", "ask", "volume", "reported")


async def listed(
    asked: Asked, exchange_id: str, symbol: str | None, limit: int, cursor: str | None
) -> Output:
    check_exchange(exchange_id)
    async with opened(asked, "tickers") as database:
        board = TickerBoard(database)
        found = await board.page(exchange_id, symbol, after=cursor, limit=limit + 1)
        if not found and symbol is not None and await board.page(exchange_id, limit=1):
            raise await _unknown(database, exchange_id, symbol)
        now_ms = database.server_clock.now_ms()
    page = found[:limit]
    more = page[-1]["_id"] if len(found) > limit else None
    facts = {"items": [ticker_facts(each) for each in page], "next_cursor": more}
    if not page:
        none_yet = f"no tickers yet: collector job add {exchange_id} tickers_snapshot"
        return Output(facts, "no tickers after that" if cursor else none_yet)
    rows = [
        (
            each["symbol"],
            *(number(each[name]) for name in ("last", "bid", "ask", "volume")),
            shown_age(each["ts"], now_ms),
        )
        for each in page
    ]
    notes = [f"there are more: --cursor '{more}'"] if more and not asked.json else []
    return Output(facts, table(_HEADINGS, rows, right="last bid ask volume"), notes)


async def _unknown(database: Database, exchange_id: str, symbol: str) -> NotFound:
    hint = did_you_mean(symbol, await MarketBook(database).symbols(exchange_id))
    return NotFound(f"{exchange_id} sent no ticker of {symbol!r}{hint}")


def ticker_facts(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "_id"}
