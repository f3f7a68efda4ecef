"""What `collector markets` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli.actions.known import existing_connector
from collector.cli.database import fleet_of
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table
from collector.operations.connectors import check_exchange

if TYPE_CHECKING:
    from collector.cli.verb import Asked

_HEADINGS = ("symbol", "kind", "listed (UTC)", "state", "timeframes")


async def listed(
    asked: Asked,
    exchange_id: str,
    search: str | None,
    every: bool,
    limit: int,
    cursor: str | None,
) -> Output:
    check_exchange(exchange_id)
    async with fleet_of(asked, "markets") as fleet:
        facts = await fleet.markets.page(
            exchange_id,
            search=search,
            active=None if every else True,
            limit=limit,
            cursor=cursor,
        )
        known = bool(facts["items"]) or await fleet.markets.symbols(exchange_id)
        if not known:
            await existing_connector(fleet, exchange_id)
    page, more = facts["items"], facts["next_cursor"]
    if not known:
        words = f"the markets of {exchange_id} are not known yet: a worker asks for them"
        return Output(facts, f"{words} (collector job run {exchange_id} markets_refresh)")
    if not page:
        return Output(facts, "no market is like that")
    rows = [
        (
            each["symbol"],
            each["kind"],
            shown_moment(each["listed_ms"], seconds=False),
            "listed" if each["active"] else f"gone since {shown_moment(each['delisted_at'])}",
            " ".join(each["timeframes"]),
        )
        for each in page
    ]
    notes = [f"there are more: --cursor '{more}'"] if more and not asked.json else []
    return Output(facts, table(_HEADINGS, rows), notes)
