"""Where a network's events come from: posted notifications, and trades of an exchange.

Both are turned into events before they enter the inbox, so that everything after it is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from collector.history.event import parse_event
from collector.history.exchange_trades import exchange_event
from collector.history.pair import Asset
from collector.history.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.history.event import Event
    from collector.market.trade import Trade


class EventSource(Protocol):
    """Something that events can be taken from."""

    def events(self) -> list[Event]:
        """In the order in which they happened. Raises BadEvent for the first that is wrong."""


class BadEvent(Refused):
    """One event of several cannot be accepted; `at` is its place among them."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at


@dataclass(frozen=True, slots=True)
class PostedEvents:
    """Notifications of a node, in the form in which they are posted."""

    documents: Sequence[Mapping[str, Any]]

    def events(self) -> list[Event]:
        found = []
        for at, document in enumerate(self.documents):
            try:
                found.append(parse_event(document))
            except Refused as error:
                raise BadEvent(at, str(error)) from error
        return found


@dataclass(frozen=True, slots=True)
class ExchangeTrades:
    """Trades of one market, by the digits that the exchange sent.

    Both assets belong to the network itself, so such a pair is never between two nets.
    """

    network: str
    symbol: str
    trades: Sequence[Trade]

    def events(self) -> list[Event]:
        base, slash, quote = self.symbol.partition("/")
        if not slash:
            raise BadEvent(0, f"{self.symbol!r} has no base and quote")
        assets = Asset.of(self.network, base), Asset.of(self.network, quote)
        found = []
        for at, trade in enumerate(self.trades):
            try:
                found.append(self._event(trade, *assets))
            except Refused as error:
                raise BadEvent(at, str(error)) from error
        return found

    def _event(self, trade: Trade, base: Asset, quote: Asset) -> Event:
        if trade.digits is None:
            raise Refused(f"trade {trade.id}: the exchange's own digits are not known")
        name = f"{self.symbol}#{trade.id}"
        return exchange_event(name, trade.ts, base, quote, *trade.digits)
