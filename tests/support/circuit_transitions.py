"""Every transition of a circuit gate as the oplog has it, held against log lines and a journal."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from collector.mongo.client import Database
    from collector.simulated.journal import JournalEntry

ON_ITS_WAY_MS = 1_500
"""A request that had its token before the trip may arrive a moment after it."""
_AFTER = {"OPEN": {"TRIPPED"}, "TRIPPED": {"HALF_OPEN"}, "HALF_OPEN": {"TRIPPED", "OPEN"}}


class Witness:
    """Sees every transition, in order."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.transitions: list[dict[str, Any]] = []

    async def watch(self, open_: asyncio.Event) -> None:
        moved = [{"$match": {"updateDescription.updatedFields.circuit_changed_at": {"$gt": 0}}}]
        async with await self._database.raw["connectors"].watch(moved) as stream:
            open_.set()
            async for change in stream:
                fields = change["updateDescription"]["updatedFields"]
                self.transitions.append(_transition(fields))

    @property
    def states(self) -> list[str]:
        return [each["to"] for each in self.transitions]

    def check_every_change_was_told_once(self, lines: Sequence[str]) -> None:
        """`lines` are everything that all processes printed."""
        for before, after in pairwise(["OPEN", *self.states]):
            assert after in _AFTER[before]
        told = sorted(line.split()[2] for line in lines)
        assert told == sorted(f"state_to={state}" for state in self.states)

    def check_what_the_exchange_saw(
        self, entries: Sequence[JournalEntry], most_probes: int
    ) -> None:
        """Nothing while TRIPPED; at most so many requests while HALF_OPEN, one after the other."""
        ends = [each["at"] for each in self.transitions[1:]] + [float("inf")]
        for transition, end in zip(self.transitions, ends, strict=True):
            during = [entry for entry in entries if transition["at"] < entry.at_ms < end]
            if transition["to"] == "TRIPPED":
                late = [e for e in during if e.at_ms > transition["at"] + ON_ITS_WAY_MS]
                assert not late, "sent while TRIPPED"
            if transition["to"] == "HALF_OPEN":
                assert len(during) <= most_probes
                for one, next_ in pairwise(during):
                    assert one.at_ms + (one.took_ms or 0) <= next_.at_ms, "two probes at a time"


def _transition(fields: dict[str, Any]) -> dict[str, Any]:
    """The transition in a change, whole or in parts: an update contains what differs."""
    whole = fields.get("circuit", {}).get("transition") or fields.get("circuit.transition") or {}
    parts = {
        name.removeprefix("circuit.transition."): value
        for name, value in fields.items()
        if name.startswith("circuit.transition.")
    }
    return {**whole, **parts}


@asynccontextmanager
async def witnessed(database: Database) -> AsyncIterator[Witness]:
    witness, open_ = Witness(database), asyncio.Event()
    task = asyncio.create_task(witness.watch(open_))
    await open_.wait()
    try:
        yield witness
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
