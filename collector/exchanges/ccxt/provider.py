"""Every exchange that ccxt supports, through one adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.exchanges.ccxt.catalog import ccxt_ids
from collector.exchanges.ccxt.package import hold_back_exchanges
from collector.exchanges.quirks.lookup import ccxt_quirks
from collector.market.calendar.calendar import ALWAYS_OPEN

if TYPE_CHECKING:
    from collector.exchanges.ccxt.exchange import CcxtExchange
    from collector.exchanges.port import Exchange, Permit
    from collector.exchanges.provider import Access
    from collector.exchanges.quirks.record import Quirks
    from collector.market.calendar.calendar import Calendar


class CcxtProvider:
    """ccxt's own classes; an exchange without a record gets ccxt's own figures."""

    exclusive_session = False
    polls_bars = False

    def ids(self) -> frozenset[str]:
        return ccxt_ids()

    def quirks(self, exchange_id: str) -> Quirks:
        return ccxt_quirks(exchange_id)

    def calendar(self, exchange_id: str, symbol: str) -> Calendar:
        return ALWAYS_OPEN

    async def lacking(self, exchange_id: str, access: Access) -> str | None:
        return None

    def open(self, exchange_id: str, permit: Permit, access: Access) -> Exchange:
        hold_back_exchanges()
        from collector.exchanges.ccxt.exchange import TIMEOUT_MS

        return self.adapter()(
            exchange_id,
            permit,
            clock=access.clock,
            urls=access.urls,
            timeout_ms=access.timeout_ms or TIMEOUT_MS,
            key=access.key,
        )

    def adapter(self) -> type[CcxtExchange]:
        """The class of its adapters. Importing it imports ccxt."""
        from collector.exchanges.ccxt.exchange import CcxtExchange

        return CcxtExchange


PROVIDER = CcxtProvider()
