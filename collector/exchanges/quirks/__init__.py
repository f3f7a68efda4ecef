"""Quirks: what makes one venue differ from another, as data.

`quirks_for(exchange_id)` answers for every exchange: from a record where one was written down, and
from ccxt's own figures (which takes an import of its module) where none was.
"""

from collector.exchanges.quirks.lookup import quirks_for
from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

__all__ = ["BanRule", "Cost", "Quirks", "VenueWindow", "quirks_for"]
