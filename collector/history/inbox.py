"""The inbox of a network: events in one order, from when they are sent until they are applied.

    history_networks        a document a network: the last sequence that was given, and the last
                            applied
    history_inbox           a document an event, gone once the ledger has it
    history_transactions    a document a transaction: the last event of each of its inputs, which
                            stays, so that a repetition is known whenever it comes

The counter and what goes with it are written in one transaction, so sequences have no holes and
become visible in order. Sequences are given only if no other process has moved the counter since
repetitions were looked for. A database that was emptied or restored from an older backup first
learns from the ledger which transactions it lacks.
"""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from pymongo import ReplaceOne

from collector.backoff import Backoff
from collector.errors import DataInvalid
from collector.history.event import Op, parse_event
from collector.history.repeats import LastEvent, without_repeats
from collector.mongo.client import Collection

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence, Set

    from pymongo.asynchronous.client_session import AsyncClientSession

    from collector.history.event import Event
    from collector.history.ledger import Ledger
    from collector.history.repeats import Inputs
    from collector.mongo.client import Database

_MET_OTHERS = Backoff(base_seconds=0.002, max_seconds=0.1)
LEARNT_AT_A_TIME = 2_000
"""Rows of the ledger that one transaction of the database takes in."""


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
        self._transactions = Collection(database, "history_transactions", settled=True)

    async def put(self, events: Sequence[Event], ledger: Callable[[], Ledger]) -> Receipt:
        """Takes events in, repetitions left out. `ledger` is called in a thread."""
        for failures in range(1, 1_000_000):
            # The ledger first: it never has what the counter does not, unless that was lost.
            before = await self.learn(await asyncio.to_thread(ledger))
            known = await self._known({each.tx_hash for each in events})
            batch = without_repeats(events, known, before)
            if not batch.fresh or await self._advance(
                before, batch.last, known, batch.known, batch.fresh
            ):
                return Receipt(batch.last, len(batch.fresh), batch.repeats)
            await asyncio.sleep(_MET_OTHERS.delay(failures, random.random()))
        raise AssertionError("unreachable")

    async def learn(self, ledger: Ledger) -> int:
        """Takes in the transactions of events that the ledger has and the database does not.

        Returns the last sequence that was given.
        """
        while (before := (await self.state()).sequence) < ledger.head:
            through, rows = await asyncio.to_thread(_events_after, ledger, before)
            known = await self._known({tx_hash for tx_hash, *_ in rows})
            learnt: dict[str, Inputs] = {}
            for tx_hash, index, last in rows:
                inputs = [*(learnt.get(tx_hash) or known.get(tx_hash, ()))]
                inputs += [None] * (index + 1 - len(inputs))
                inputs[index] = last
                learnt[tx_hash] = tuple(inputs)
            await self._advance(before, through, known, learnt)
        return before

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
        return [
            (row["sequence"], replace(parse_event(row), times=tuple(row["times"])))
            for row in in_order
        ]

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

    async def report_damage(self, path: str, why: str) -> None:
        """Records a damaged file, so that front ends can show it until it is repaired."""
        damage = {"path": path, "why": why, "since": {"$toLong": "$$NOW"}}
        await self._networks.update_one(
            {"_id": self.network},
            [{"$set": {"damage": {"$ifNull": ["$damage", damage]}}}],
            upsert=True,
        )

    async def clear_damage(self) -> None:
        """Every file is sound."""
        await self._networks.update_one(
            {"_id": self.network, "damage": {"$exists": True}}, {"$unset": {"damage": ""}}
        )

    async def forget(self, first: int, last: int) -> None:
        """These events are lost: they are no repetitions when they are sent again."""
        is_lost = {
            "$and": [{"$gte": ["$$this.sequence", first]}, {"$lte": ["$$this.sequence", last]}]
        }
        kept = {"$cond": [is_lost, None, "$$this"]}
        await self._transactions.update_many(
            {
                "_id": {"$regex": f"^{re.escape(self._name(''))}"},
                "inputs.sequence": {"$gte": first, "$lte": last},
            },
            [{"$set": {"inputs": {"$map": {"input": "$inputs", "in": kept}}}}],
        )

    async def state(self) -> NetworkState:
        return _state(await self._networks.find_one({"_id": self.network}))

    async def _known(self, hashes: Set[str]) -> dict[str, Inputs]:
        names = [self._name(tx_hash) for tx_hash in sorted(hashes)]
        found = await self._transactions.find({"_id": {"$in": names}})
        skipped = len(self._name(""))
        return {
            row["_id"][skipped:]: tuple(
                each and LastEvent(Op(each["op"]), each["sequence"], each["ts"])
                for each in row["inputs"]
            )
            for row in found
        }

    def _name(self, tx_hash: str) -> str:
        return f"{self.network}/{tx_hash}"

    async def _advance(
        self,
        before: int,
        through: int,
        known: Container[str],
        changed: Mapping[str, Inputs],
        fresh: Sequence[Event] = (),
    ) -> bool:
        """Moves the counter, together with what it stands for; False when it has moved already.

        `known` has the transactions that were known before.
        """
        rows = [
            {"network": self.network, "sequence": number, "times": event.times} | event.document()
            for number, event in enumerate(fresh, start=before + 1)
        ]
        documents = [
            (tx_hash in known, {"_id": self._name(tx_hash), "inputs": _documents(inputs)})
            for tx_hash, inputs in changed.items()
        ]
        # An insertion takes half the time of an upsert.
        inserted = [each for is_known, each in documents if not is_known]
        replaced = [
            ReplaceOne({"_id": each["_id"]}, each) for is_known, each in documents if is_known
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
                [{"$set": {"sequence": through, "updated_at": "$$NOW"}}],
                session=session,
            )
            if not moved.matched_count:
                return False
            if inserted:
                await raw["history_transactions"].insert_many(inserted, session=session)
            if replaced:
                await raw["history_transactions"].bulk_write(replaced, session=session)
            if rows:
                await raw["history_inbox"].insert_many(rows, session=session)
            return True

        return await self._database.in_transaction(write)


def _documents(inputs: Inputs) -> list[dict[str, Any] | None]:
    return [
        None if each is None else {"op": each.op.value, "sequence": each.sequence, "ts": each.ts}
        for each in inputs
    ]


def _events_after(ledger: Ledger, sequence: int) -> tuple[int, list[tuple[str, int, LastEvent]]]:
    """The next events that the ledger has, some at a time, and the sequence that they reach."""
    through, table = next(ledger.since(sequence))
    table = table.sort_by([("sequence", "ascending"), ("input", "ascending")])
    names = ("tx_hash", "input", "op", "sequence", "ts")
    if len(table) > LEARNT_AT_A_TIME:
        through = table["sequence"][LEARNT_AT_A_TIME].as_py()
        table = table.filter(pc.less_equal(table["sequence"], through))
    columns = (table[name].to_pylist() for name in names)
    return through, [
        (tx_hash, index, LastEvent(Op(op), number, ts))
        for tx_hash, index, op, number, ts in zip(*columns, strict=True)
    ]


async def network_states(
    database: Database, among: Sequence[str] | None = None
) -> dict[str, NetworkState]:
    """Every network that was ever sent an event, or those that are named."""
    found = await database.history_networks.find({} if among is None else {"_id": {"$in": among}})
    return {row["_id"]: _state(row) for row in found}


@dataclass(frozen=True, slots=True)
class NetworkDamage:
    """The first damaged file of a network that anybody met since it was repaired last."""

    network: str
    path: str
    why: str
    since_ms: int


async def damaged_networks(database: Database) -> list[NetworkDamage]:
    """Every network with a damaged file."""
    found = await database.history_networks.find({"damage": {"$exists": True}})
    return [
        NetworkDamage(row["_id"], damage["path"], damage["why"], damage["since"])
        for row in found
        for damage in [row["damage"]]
    ]


def _state(row: dict[str, Any] | None) -> NetworkState:
    if row is None:
        return NetworkState()
    return NetworkState(row.get("sequence", 0), row.get("applied_through", 0))
