"""What ccxt would send for the bars and trades of made-up markets. Nothing leaves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ccxt.base.errors import BaseError

from collector.exchanges.ccxt.catalog import ccxt_class, ccxt_ids

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

NOW_MS = 1_767_225_600_000
SINCE_MS = NOW_MS - 3_600_000
OUR_OWN = {"simulated"}
SPOT: dict[str, Any] = {
    "symbol": "BTC/USDT",
    "base": "BTC",
    "quote": "USDT",
    "baseId": "btc",
    "quoteId": "usdt",
    "type": "spot",
    "spot": True,
    "swap": False,
    "future": False,
    "option": False,
    "contract": False,
    "margin": False,
    "active": True,
    "precision": {"amount": 1e-8, "price": 0.01},
    "limits": {"amount": {"min": 1e-8}},
}
CONTRACT = SPOT | {
    "settle": "USDT",
    "settleId": "usdt",
    "symbol": "BTC/USDT:USDT",
    "type": "swap",
    "spot": False,
    "swap": True,
    "contract": True,
    "linear": True,
    "inverse": False,
    "contractSize": 0.01,
}
INVERSE = CONTRACT | {
    "quote": "USD",
    "quoteId": "usd",
    "settle": "BTC",
    "settleId": "btc",
    "symbol": "BTC/USD:BTC",
    "linear": False,
    "inverse": True,
}
KINDS = {"spot": SPOT, "linear": CONTRACT, "inverse": INVERSE}
IDS = ("BTC-USDT", "1001")
"""Most names would do, but some exchanges have numbers for them."""
DEMANDED = {"until": NOW_MS, "dataType": "bestAsk", "lastId": 7}
"""What single exchanges do not build a request without."""


class Stopped(Exception):
    """A request was about to leave."""


@dataclass(frozen=True)
class Unsent:
    """A request that ccxt was about to send, and how long it would have waited after it."""

    what: str
    method: str
    url: str
    body: Any
    wait_ms: float


@cache
def with_bars() -> tuple[str, ...]:
    """Exchanges whose bars ccxt fetches."""
    found = sorted(ccxt_ids() - OUR_OWN)
    return tuple(each for each in found if ccxt_class(each)().has.get("fetchOHLCV") is True)


async def requests_for(exchange_id: str, market: Any, limit: int = 10) -> list[Unsent | str]:
    """The requests for a market's bars and trades; the name of the error where none is built."""
    key = {"apiKey": "k", "secret": "s" * 32, "uid": "u", "password": "p", "accountId": "a"}
    venue = ccxt_class(exchange_id)(key)
    venue.milliseconds = lambda: NOW_MS
    venue.timeout_on_exit = 0  # Nothing is sent: no connection has to end.
    plain = {name: value for name, value in market.items() if name != "info"}
    venue.set_markets([plain | {"info": {}}])
    venue.markets = {market["symbol"]: market}
    asks = {
        "bars": lambda: venue.fetch_ohlcv(
            market["symbol"], a_timeframe(venue.timeframes), SINCE_MS, limit, DEMANDED
        ),
        "trades": lambda: venue.fetch_trades(market["symbol"], None, limit, DEMANDED),
    }
    if venue.has.get("fetchTrades") is not True:
        del asks["trades"]
    found: list[Unsent | str] = []
    for what, ask in asks.items():
        costs: list[float] = []

        async def throttle(cost: float, costs: list[float] = costs) -> None:
            costs.append(cost)

        async def fetch(
            url: str, method: str, headers: Any, body: Any, what: str = what, costs: Any = costs
        ) -> Any:
            found.append(Unsent(what, method, url, body, costs[-1] * venue.rateLimit))
            raise Stopped

        venue.throttle, venue.fetch = throttle, fetch
        try:
            await ask()
        except Stopped:
            pass
        except (BaseError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            found.append(type(error).__name__)
    await venue.close()
    return found


def a_timeframe(served: Mapping[str, Any]) -> str:
    return "1h" if "1h" in served else next(iter(served))


def complete(
    exchange_id: str, fields: dict[str, Any], venue_id: str, extra: Collection[str] = ()
) -> Any:
    """A market as ccxt holds it after loading, with a value in each of the `extra` fields."""
    top = {name: f"<{name}>" for name in extra if not name.startswith("info.")}
    info = {name.removeprefix("info."): f"<{name}>" for name in extra if name not in top}
    market = {"id": venue_id, **fields, **top, "info": {**info, "listed": {"deeply": 1}}}
    venue = ccxt_class(exchange_id)()
    venue.set_markets([market])
    return venue.markets[fields["symbol"]]
