"""From sending an event to its place in the ledger, by a worker that has nothing else to do."""

from __future__ import annotations

import asyncio
import tempfile
import time
from typing import TYPE_CHECKING

from collector.history.event import Event, Input, Op
from collector.history.reader import HistoryReader
from collector.history.sources import PostedEvents
from collector.history.terms import HistoryTerms
from collector.history.uint256 import SCALE
from collector.jobs.states import State
from collector.operations.history_events import EventIntake
from collector.store.store import Store
from tests.bench.harness import Bench, Figure, percentile
from tests.bench.history_load import PAIRS, T0
from tests.bench.working import working
from workers.handlers.history_apply import HistoryApply
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from collector.mongo.client import Database

NET = "bench"
TERMS = HistoryTerms((NET,))
WITHIN_MS = 100
A_BODY = 500


async def run(bench: Bench) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="collector-history-") as folder:
        async with bench.database() as database:
            store = Store(folder)
            handlers = {"history_apply": HistoryApply(database, store, TERMS)}
            config = WorkerConfig("bench", networks=(NET,))
            async with working(database, handlers, config):
                sending = _Sending(database, store)
                waits = [await sending.one() for _ in range(-2, bench.pick(100, 20))][2:]
                rate = await sending.many(bench.pick(40, 10))
    answered, seen = ([wait[at] for wait in waits] for at in (0, 1))
    bench.show(
        "one event sent to an idle worker, ms",
        ["", "p50", "p99"],
        [
            ["until it is accepted", percentile(answered, 0.5), percentile(answered, 0.99)],
            ["from then until a reader sees it", percentile(seen, 0.5), percentile(seen, 0.99)],
        ],
    )
    return [
        Figure(
            "history_apply.accepted to read, p50", percentile(seen, 0.5), " ms", at_most=WITHIN_MS
        ),
        Figure("history_apply.events a second, sent and applied", rate, " / s"),
    ]


class _Sending:
    def __init__(self, database: Database, store: Store) -> None:
        self._database = database
        self._intake = EventIntake(database, store, TERMS)
        pair = PAIRS[0]
        self._reader = HistoryReader(NET, pair.base, pair.quote, store.storage)
        self._count = 0

    async def one(self) -> tuple[float, float]:
        """Milliseconds until it is accepted, and from then until it is read."""
        await self._at_rest()
        began = time.monotonic()
        receipt = await self._intake.take(NET, PostedEvents([self._next()]))
        accepted = time.monotonic()
        await self._reached(receipt.sequence)
        return (accepted - began) * 1000, (time.monotonic() - accepted) * 1000

    async def many(self, bodies: int) -> float:
        """Events a second, from the first request to the last event in the ledger."""
        began = time.monotonic()
        for _ in range(bodies):
            body = PostedEvents([self._next() for _ in range(A_BODY)])
            receipt = await self._intake.take(NET, body)
        await self._reached(receipt.sequence)
        return bodies * A_BODY / (time.monotonic() - began)

    def _next(self) -> dict[str, object]:
        self._count += 1
        pair = PAIRS[0]
        given = Input(pair.base, pair.quote, SCALE, 10, 0, 1)
        return Event(Op.ADD, f"0x{self._count:x}", T0 + self._count * 500, (given,)).document()

    async def _reached(self, sequence: int) -> None:
        while self._reader.volume()["applied_through"] < sequence:
            await asyncio.sleep(0.002)

    async def _at_rest(self) -> None:
        busy = {"state": {"$in": [State.QUEUED.value, State.RUNNING.value]}}
        while await self._database.jobs.count_documents(busy):
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
