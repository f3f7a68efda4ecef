"""Checks of what was typed against what is known, with near matches for what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import NotFound
from collector.exchanges.registry import known_exchanges
from collector.market.near import did_you_mean

if TYPE_CHECKING:
    from collector.connectors.connector import Connector
    from collector.connectors.registry import ConnectorRegistry


async def existing_connector(registry: ConnectorRegistry, exchange_id: str) -> Connector:
    """The connector. NotFound lists the existing ones, or how to create it."""
    try:
        return await registry.get(exchange_id)
    except NotFound:
        made = [connector.exchange_id for connector in await registry.all()]
        if exchange_id in known_exchanges():
            hint = f": collector connector add {exchange_id}"
        else:
            hint = did_you_mean(exchange_id, made or known_exchanges())
        raise NotFound(f"there is no connector {exchange_id!r}{hint}") from None
