"""What `collector tickers` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli.database import fleet_of
from collector.cli.moments import shown_age
from collector.cli.output import Output, number, table
from collector.errors import NotFound
from collector.market.near import did_you_mean
from collector.operations.connectors import check_exchange

if TYPE_CHECKING:
    from collector.cli.verb import Asked

_HEADINGS = ("symbol", "last", "bid", "ask", "volume", "reported")


async def listed(
    asked: Asked, exchange_id: str, symbol: str | None, limit: int, cursor: str | None
) -> Output:
    check_exchange(exchange_id)
    async with fleet_of(asked, "tickers") as fleet:
        facts = await fleet.markets.tickers(exchange_id, symbol, limit, cursor)
        others = facts if symbol is None else await fleet.markets.tickers(exchange_id, None, 1)
        if not facts["items"] and others["items"]:
            hint = did_you_mean(str(symbol), await fleet.markets.symbols(exchange_id))
            raise NotFound(f"{exchange_id} sent no ticker of {symbol!r}{hint}")
        now_ms = await fleet.overview.now_ms()
    page, more = facts["items"], facts["next_cursor"]
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
