"""The inbox of a network: events in one order, from when they are sent until they are applied.

    history_networks    a document a network: the last sequence that was given, and the last applied
    history_inbox       a document an event, gone once the ledger has it

The counter and the rows are written in one transaction, so sequences have no holes and become
visible in order. Sequences are given only if no other process has moved the counter since
repetitions were looked for. The order of looking matters: the counter first, then the inbox, then
the ledger. An event leaves the inbox when the ledger has it, so it is found in one of them.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.backoff import Backoff
from collector.errors import DataInvalid
from collector.history.event import Op, parse_event
from collector.history.repeats import WaitingEvent, without_repeats
from collector.mongo.client import Collection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pymongo.asynchronous.client_session import AsyncClientSession

    from collector.history.event import Event
    from collector.history.known_trades import KnownTrades
    from collector.mongo.client import Database

_MET_OTHERS = Backoff(base_seconds=0.002, max_seconds=0.1)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of events that were sent: `sequence` is that of the last of them."""

    sequence: int
    accepted: int
    duplicates: int


@dataclass(frozen=True, slots=True)
class NetworkState:
    """How far a network has come: the last sequence given, and the last in the ledger."""

    sequence: int = 0
    applied_through: int = 0


class EventInbox:
    """One network's events that wait for being applied."""

    def __init__(self, database: Database, network: str) -> None:
        self.network = network
        self._database = database
        self._rows = Collection(database, "history_inbox", settled=True)
        self._networks = Collection(database, "history_networks", settled=True)

    async def put(
        self, events: Sequence[Event], known: Callable[[Sequence[Event]], KnownTrades]
    ) -> Receipt:
        """Takes events in, repetitions left out. `known` looks into the ledger, in a thread."""
        for failures in range(1, 1_000_000):
            before = await self.state()
            waiting = await self._waiting(events)
            found = await asyncio.to_thread(known, events)
            # A database that was set up again begins where the ledger ends.
            head = max(before.sequence, found.head)
            batch = without_repeats(events, found.bucket_ms, waiting, found.inputs, head)
            if not batch.fresh or await self._given(before.sequence, head, batch.fresh):
                return Receipt(batch.last, len(batch.fresh), batch.repeats)
            await asyncio.sleep(_MET_OTHERS.delay(failures, random.random()))
        raise AssertionError("unreachable")

    async def after(self, sequence: int, limit: int) -> list[tuple[int, Event]]:
        """Events that follow `sequence` without a hole, at most `limit`.

        Raises DataInvalid when the next one is missing and a later one is there: whatever comes
        after a hole must not be applied.
        """
        found = await self._rows.find(
            {"network": self.network, "sequence": {"$gt": sequence}},
            sort=[("sequence", 1)],
            limit=limit,
        )
        expected = range(sequence + 1, sequence + 1 + len(found))
        in_order = [
            row for row, number in zip(found, expected, strict=True) if row["sequence"] == number
        ]
        if found and not in_order:
            raise DataInvalid(
                f"{self.network}: event {sequence + 1} is missing in the inbox, which goes on with"
                f" {found[0]['sequence']}: restore the ledger's files or the database"
            )
        return [(row["sequence"], parse_event(row)) for row in in_order]

    async def applied(self, through: int) -> None:
        """The ledger has every event up to `through`: they leave the inbox."""
        await self._networks.update_one(
            {"_id": self.network},
            [
                {
                    "$set": {
                        "sequence": {"$max": ["$sequence", through]},
                        "applied_through": {"$max": ["$applied_through", through]},
                        "updated_at": "$$NOW",
                    }
                }
            ],
            upsert=True,
        )
        await self._rows.delete_many({"network": self.network, "sequence": {"$lte": through}})

    async def state(self) -> NetworkState:
        return _state(await self._networks.find_one({"_id": self.network}))

    async def _waiting(self, events: Sequence[Event]) -> list[WaitingEvent]:
        hashes = sorted({each.tx_hash for each in events})
        found = await self._rows.find(
            {"network": self.network, "tx_hash": {"$in": hashes}},
            projection={"sequence": 1, "op": 1, "tx_hash": 1, "ts": 1, "count": 1},
        )
        return [
            WaitingEvent(row["sequence"], Op(row["op"]), row["tx_hash"], row["ts"], row["count"])
            for row in found
        ]

    async def _given(self, before: int, head: int, fresh: Sequence[Event]) -> bool:
        """Gives the events the sequences after `head`; False when the counter has moved."""
        rows = [
            {"network": self.network, "sequence": number, "count": len(event.inputs)}
            | event.document()
            for number, event in enumerate(fresh, start=head + 1)
        ]
        if before == 0:
            await self._networks.update_one(
                {"_id": self.network},
                {"$setOnInsert": {"sequence": 0, "applied_through": 0}},
                upsert=True,
            )
        raw = self._database.raw

        async def write(session: AsyncClientSession) -> bool:
            moved = await raw["history_networks"].update_one(
                {"_id": self.network, "sequence": before},
                [{"$set": {"sequence": head + len(fresh), "updated_at": "$$NOW"}}],
                session=session,
            )
            if moved.matched_count:
                await raw["history_inbox"].insert_many(rows, session=session)
            return bool(moved.matched_count)

        return await self._database.in_transaction(write)


async def network_states(
    database: Database, among: Sequence[str] | None = None
) -> dict[str, NetworkState]:
    """Every network that was ever sent an event, or those that are named."""
    found = await database.history_networks.find({} if among is None else {"_id": {"$in": among}})
    return {row["_id"]: _state(row) for row in found}


def _state(row: dict[str, Any] | None) -> NetworkState:
    if row is None:
        return NetworkState()
    return NetworkState(row.get("sequence", 0), row.get("applied_through", 0))
