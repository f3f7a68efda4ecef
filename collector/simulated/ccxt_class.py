"""The simulated exchange as a class of ccxt: Binance's own code, pointed at this machine."""

from __future__ import annotations

from typing import Any

from ccxt.async_support.binance import binance

from collector.simulated.bars import FRAMES

DEFAULT_URL = "http://127.0.0.1:8900"
_KEPT = {
    *("fetchMarkets", "fetchOHLCV", "fetchTicker", "fetchTickers", "fetchBidsAsks"),
    *("fetchTime", "fetchTrades", "spot"),
}


class simulated(binance):  # type: ignore[misc]  # noqa: N801  ccxt names classes by their id.
    """Spot markets of a simulated exchange.

    Its address is the option `url`: `simulated({"options": {"url": "http://127.0.0.1:8900"}})`. No
    other host is ever contacted: no other address is known to it.
    """

    def describe(self) -> Any:
        described = super().describe()
        described["id"] = "simulated"
        described["name"] = "Simulated"
        described["pro"] = False
        described["certified"] = False
        described["timeframes"] = {name: name for name in FRAMES}
        described["has"] = {
            name: value if name in _KEPT else (False if value else value)
            for name, value in described["has"].items()
        }
        described["urls"] = {"api": _addresses(DEFAULT_URL), "www": DEFAULT_URL, "doc": []}
        described["options"] |= {
            "url": DEFAULT_URL,
            "fetchMarkets": {"types": ["spot"]},
            "fetchCurrencies": False,
            "fetchMargins": False,
            "defaultType": "spot",
        }
        return described

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config or {})
        self.urls["api"] = _addresses(self.options["url"])


def _addresses(url: str) -> dict[str, str]:
    """Only what is public: ccxt refuses every call for which there is no address."""
    return {"public": url.rstrip("/") + "/api/v3"}
