"""Changes of the database as a change stream reports them, and the documents as events.

The stream reports only that a document changed (statements that matter set `updated_at`; token
grants and lease renewals do not). Names of changed documents are gathered and then read at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.listener import ServerEvent
from api.schemas.circuit import CircuitEvent
from api.schemas.connector_view import ConnectorView
from api.schemas.history import NetworkEvent
from api.schemas.jobs import JobView
from api.schemas.live import LiveView
from collector.connectors.connector import Connector
from collector.history.inbox import network_states
from collector.jobs.queue import JobQueue
from collector.streams.live_board import LiveBoard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.mongo.client import Database

MOST_GATHERED = 1000
_UPDATED = ["jobs", "connectors", "history_networks"]
NOTICED: list[dict[str, Any]] = [
    {
        "$match": {
            "$or": [
                {"ns.coll": "live", "operationType": {"$in": ["insert", "replace", "update"]}},
                {
                    "ns.coll": {"$in": _UPDATED},
                    "operationType": {"$in": ["insert", "replace"]},
                },
                {
                    "ns.coll": {"$in": _UPDATED},
                    "updateDescription.updatedFields.updated_at": {"$exists": True},
                },
            ],
        }
    },
    {
        "$project": {
            "ns.coll": 1,
            "documentKey": 1,
            "updateDescription.updatedFields.circuit_changed_at": 1,
        }
    },
]


class ChangedDocuments:
    """Names of documents that changed and were not read yet."""

    def __init__(self) -> None:
        kinds = ("jobs", "connectors", "circuits", "history_networks", "live")
        self._changed: dict[str, set[Any]] = {name: set() for name in kinds}

    def __len__(self) -> int:
        return sum(map(len, self._changed.values()))

    def gather(self, change: Mapping[str, Any]) -> None:
        """Records what changed. A circuit gate that moved is an event of its own."""
        key = change["documentKey"]["_id"]
        self._changed[change["ns"]["coll"]].add(key)
        fields = change.get("updateDescription", {}).get("updatedFields", {})
        if "circuit_changed_at" in fields:
            self._changed["circuits"].add(key)

    def take(self) -> dict[str, list[Any]]:
        """Some of each kind; they are no longer held."""
        return {
            name: [keys.pop() for _ in range(min(len(keys), MOST_GATHERED))]
            for name, keys in self._changed.items()
        }


async def events_of(database: Database, keys: Mapping[str, list[Any]]) -> list[ServerEvent]:
    """The documents as they are now."""
    return [
        *await _jobs(database, keys["jobs"]),
        *await _connectors(database, keys["connectors"], keys["circuits"]),
        *await _networks(database, keys["history_networks"]),
        *await _live_states(database, keys["live"]),
    ]


async def _jobs(database: Database, ids: list[Any]) -> list[ServerEvent]:
    if not ids:
        return []
    views = [JobView.of(job) for job in await JobQueue(database).of_ids(ids)]
    return [
        ServerEvent("job", view.id, view.model_dump_json().encode(), view.exchange_id)
        for view in views
    ]


async def _live_states(database: Database, ids: list[Any]) -> list[ServerEvent]:
    """Prices, heartbeats and market states, each under the name of its kind."""
    if not ids:
        return []
    return [
        ServerEvent(
            each["kind"],
            each["_id"],
            LiveView.of(each).model_dump_json().encode(),
            each["exchange_id"],
        )
        for each in await LiveBoard(database).of_ids(ids)
    ]


async def _connectors(database: Database, ids: list[Any], circuits: list[Any]) -> list[ServerEvent]:
    if not ids and not circuits:
        return []
    documents = await database.connectors.find({"_id": {"$in": [*ids, *circuits]}})
    now_ms = database.server_clock.now_ms()
    events = []
    for document in documents:
        connector = Connector.from_document(document)
        exchange_id = connector.exchange_id
        view = ConnectorView.of(connector, now_ms).model_dump_json().encode()
        events.append(ServerEvent("connector", exchange_id, view, exchange_id))
        if document["_id"] in circuits:
            body = CircuitEvent.of(connector, now_ms).model_dump_json().encode()
            events.append(ServerEvent("circuit", exchange_id, body, exchange_id))
    return events


async def _networks(database: Database, ids: list[Any]) -> list[ServerEvent]:
    if not ids:
        return []
    states = await network_states(database, ids)
    views = [NetworkEvent.of(network, state) for network, state in states.items()]
    return [ServerEvent("history", view.network, view.model_dump_json().encode()) for view in views]
