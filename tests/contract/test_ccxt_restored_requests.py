"""Markets from a database build the very requests that loaded ones build, at every exchange.

Each exchange's own ccxt class builds requests for a made-up market, which carries a value in every
field that its code looks at; none is sent. The same market, as MongoDB keeps it, must lead to the
same requests.
"""

from __future__ import annotations

import json
from typing import Any

import bson
import pytest

from collector.exchanges.ccxt.catalog import ccxt_class
from collector.exchanges.ccxt.markets import markets_of
from collector.markets.documents import markets_from_documents, markets_to_documents
from tests.contract.unsent_requests import (
    IDS,
    KINDS,
    SPOT,
    Unsent,
    complete,
    requests_for,
    with_bars,
)


class Watched(dict[str, Any]):
    """Notes the fields that were looked for and are not there."""

    def __init__(self, fields: dict[str, Any], missed: set[str], path: str = "") -> None:
        super().__init__(fields)
        self._missed = missed
        self._path = path

    def __missing__(self, name: str) -> Any:
        self._missed.add(f"{self._path}{name}")
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            self._missed.add(f"{self._path}{name}")
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


def restored(exchange_id: str, market: Any) -> Any:
    """The market after a stay in MongoDB, as the adapter gives it back to ccxt."""
    documents = markets_to_documents(markets_of(exchange_id, {market["symbol"]: market}, {}))
    stored = [bson.decode(bson.encode(document)) for document in documents]
    (back,) = markets_from_documents(exchange_id, stored).markets
    venue = ccxt_class(exchange_id)()
    venue.set_markets([dict(back.raw)])
    return venue.markets[market["symbol"]]


def field(market: Any, name: str) -> Any:
    value = market
    for part in name.split("."):
        value = (value or {}).get(part)
    return value


@pytest.mark.parametrize("exchange_id", with_bars())
async def test_a_restored_market_builds_the_same_requests(exchange_id: str) -> None:
    built = 0
    for fields in KINDS.values():
        for venue_id in IDS:
            bare, missed = complete(exchange_id, fields, venue_id), set[str]()
            info = Watched({}, missed, "info.")
            await requests_for(exchange_id, Watched({**bare, "info": info}, missed))
            full = complete(exchange_id, fields, venue_id, missed)
            wanted = await requests_for(exchange_id, full)
            back = restored(exchange_id, full)
            assert await requests_for(exchange_id, back) == wanted, f"looks at {sorted(missed)}"
            assert {name: field(back, name) for name in missed} == {
                name: field(full, name) for name in missed
            }
            built += sum(isinstance(request, Unsent) for request in wanted)
    assert built, "no request was built, so nothing was compared"


def test_nothing_else_of_the_venues_answer_is_kept() -> None:
    market = complete("binance", SPOT, "BTCUSDT", {"info.type", "info.filters"})
    kept = restored("binance", market)
    assert kept["info"] == {"type": "<info.type>"}
    assert len(json.dumps(kept)) < 1_500
