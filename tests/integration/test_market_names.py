"""Names against the book of markets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import InvalidInput
from collector.operations.market_names import MarketNames
from tests.support.local_api import LISTED, know_markets

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document


class AskedSingly(MarketNames):
    """Notes the symbols that are looked up one by one."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.singly: list[str] = []

    async def market(self, exchange_id: str, symbol: str, *, field: str) -> Document | None:
        self.singly.append(symbol)
        return await super().market(exchange_id, symbol, field=field)


async def test_thousands_of_known_symbols_are_not_looked_up_one_by_one(database: Database) -> None:
    await know_markets(database)
    names = AskedSingly(database)
    symbols = await names.meant("simulated", ["*/usdt"])
    assert symbols == list(LISTED)
    assert await names.check_series("simulated", symbols, ["1m", "1h"])
    assert names.singly == []
    with pytest.raises(InvalidInput, match="no timeframe '7m'"):
        await names.check_series("simulated", symbols, ["7m"])
    with pytest.raises(InvalidInput, match="did you mean BTC/USDT"):
        await names.check_series("simulated", [*symbols, "BTC/USTD"], ["1m"])
    assert names.singly == ["BTC/USTD"]


async def test_the_exchanges_own_name_of_a_market_is_understood(database: Database) -> None:
    await know_markets(database)
    await database.markets.update_one(
        {"exchange_id": "simulated", "symbol": "ETH/USDT"}, {"$set": {"venue_id": "XETHZUSD"}}
    )
    assert await MarketNames(database).meant("simulated", ["XETHZUSD"]) == ["ETH/USDT"]
