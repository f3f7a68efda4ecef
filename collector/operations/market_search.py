"""Markets that fit a few letters, the likeliest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.markets.book import MarketBook

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document


async def market_search(
    database: Database, text: str, exchange_id: str | None = None, *, limit: int = 50
) -> list[Document]:
    """Of one exchange, or of all whose markets are known. Those that are listed today first."""
    found = await MarketBook(database).like(text, exchange_id)
    return sorted(found, key=lambda each: _rank(each, text))[:limit]


def _rank(market: Document, text: str) -> tuple[bool, int, int, str, str]:
    """A base that is the text, a symbol that begins with it, then the shorter symbol."""
    word, symbol = (text.split() or [""])[0].upper(), market["symbol"].upper()
    bare = word.replace("/", "")
    nearness = (
        0
        if market["base"].upper() == bare or symbol.replace("/", "") == bare
        else 1
        if symbol.replace("/", "").startswith(bare)
        else 2
    )
    return not market["active"], nearness, len(symbol), symbol, market["exchange_id"]
