"""Quirks: what makes one venue differ from another, as data.

`registry.quirks_for(exchange_id)` has them for every exchange. For ccxt's (lookup.py) they come
from a record where there is one, and else from ccxt's own figures.
"""

from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

__all__ = ["BanRule", "Cost", "Quirks", "VenueWindow"]
