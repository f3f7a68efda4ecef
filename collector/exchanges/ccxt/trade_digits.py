"""Price and amount of a trade as the venue wrote them, beside the floats that ccxt makes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ccxt.async_support.base.exchange import BaseExchange


class TradeDigits(BaseExchange):  # type: ignore[misc] # ccxt has no types
    """Stands before an exchange's own class: every trade gets `digits`, or None."""

    def safe_trade(self, trade: Any, market: Any = None) -> Any:
        """The last step that has the texts; after it there are floats."""
        texts = self.safe_string(trade, "price"), self.safe_string(trade, "amount")
        made = super().safe_trade(trade, market)
        made["digits"] = written_digits(trade.get("info"), *texts, market or {})
        return made


def written_digits(row: Any, price: Any, amount: Any, market: Any) -> tuple[str, str] | None:
    """Both texts, the amount in base currency; None unless the venue's row has them as text.

    A venue that sends numbers has lost digits before anyone could keep them. A count of contracts
    is multiplied exactly; that of an inverse contract would have to be divided.
    """
    sent = _texts(row)
    if price not in sent or amount not in sent:
        return None
    if not market.get("contract"):
        return price, amount
    size = market.get("contractSize")
    if market.get("inverse") or not isinstance(size, int | float):
        return None
    return price, format(Decimal(amount) * Decimal(str(size)), "f")


def _texts(row: Any) -> set[str]:
    values = row.values() if isinstance(row, dict) else row if isinstance(row, list) else ()
    return {each for each in values if isinstance(each, str)}
