"""What was set for each connector, apart from what it has granted: enough to create it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors.connector import SETTINGS
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.session_lease import recovered_session
from collector.connectors.venue_limits import venue_limits
from collector.exchanges.registry import is_exclusive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.mongo.client import Database

KEPT = (
    "exchange_id",
    *SETTINGS,
    "declared",
    # A ban is a fact about the exchange. It must be respected by a new database, too.
    "blocked_until",
    "blocked_reason",
    "blocked_at",
    "blocked_for_ms",
)


async def connector_wishes(database: Database) -> list[dict[str, Any]]:
    """Every connector's own settings, in the order of their names."""
    wishes = []
    for connector in await ConnectorRegistry(database).all():
        record = {name: connector.document[name] for name in KEPT if name in connector.document}
        record["circuit"] = (connector.document.get("circuit") or {}).get("settings")
        wishes.append(record)
    return wishes


async def bring_back(database: Database, wish: Mapping[str, Any]) -> bool:
    """Creates the connector as it was recorded; False when there is one already.

    What it had granted is not known: a loss of the database gives every window a fresh start.
    """
    exchange_id = str(wish["exchange_id"])
    registry = ConnectorRegistry(database)
    _, made = await registry.ensure(exchange_id, venue_limits(exchange_id))
    if not made:
        return False
    fields: dict[str, Any] = {name: {"$literal": wish[name]} for name in KEPT if name in wish}
    if wish.get("circuit"):
        fields["circuit.settings"] = {"$literal": wish["circuit"]}
    if is_exclusive(exchange_id):
        fields["session"] = recovered_session()
    await database.connectors.update_one({"exchange_id": exchange_id}, [{"$set": fields}])
    return True
