"""Trade history under two API processes and two workers, one of which is killed again and again.

Whatever was accepted, in the order of sequence, decides: every answer that anyone got on the way
has to be what the surviving trades made up to its `applied_through`, exactly.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.history.answers import ohlcv
from collector.history.event import Event, Input, Op
from collector.history.inbox import EventInbox
from collector.history.uint256 import LIMIT, SCALE
from collector.operations.history_events import apply_job
from tests.acceptance.api_process import Api, api_process
from tests.support.fleet import LONG
from tests.support.history_trades import CROSS, MINUTE, OTHER, PAIR, Model, at, recomputed
from tests.support.processes import Process, program
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.history.pair import Pair
    from collector.mongo.client import Database

NET = "riemann"
PAIRS = (PAIR, OTHER, CROSS)
EVENTS, KILLS = (4_000, 60) if LONG else (150, 3)
AHEAD = EVENTS // KILLS
"""Events that are sent before the next kill has to be done."""
LEASE_MS = 600


def any_event(chance: random.Random, sent: list[Event]) -> Event:
    """New, late, repeated, or the deletion of an earlier one; sums near 2^256 among them."""
    if sent and chance.random() < 0.45:
        earlier = chance.choice(sent[-40:])
        op = chance.choice([Op.DELETE, Op.DELETE, earlier.op])
        return Event(op, earlier.tx_hash, earlier.ts, earlier.inputs)
    pair: Pair = chance.choice(PAIRS)
    sell, buy = chance.sample([pair.base, pair.quote], 2)
    value = chance.choice([chance.randrange(1, 10**20), chance.randrange(LIMIT // 3, LIMIT)])
    price = chance.choice([1, SCALE // 2, SCALE, chance.randrange(1, 3 * SCALE)])
    payout = chance.choice([1, 1, 1, 0])
    given = Input(sell, buy, price, min(value, LIMIT // 4), 0, payout)
    moment = at(chance.choice([0, 0.25, 1, 1.5, 2, 3, 44_641]) + chance.randrange(3) / 1000)
    return Event(Op.ADD, f"0x{chance.randrange(EVENTS)}", moment, (given,) * chance.choice([1, 2]))


@dataclass
class Storm:
    """What has been sent, accepted and answered so far."""

    accepted: dict[int, Event] = field(default_factory=dict)
    answers: list[tuple[Pair, int, list[Any]]] = field(default_factory=list)
    kills: int = 0
    over: bool = False

    async def send(self, way: Api, chance: random.Random, count: int) -> None:
        sent: list[Event] = []
        for number in range(count):
            await until(lambda n=number: 2 * n <= (self.kills + 1) * AHEAD, "a kill is done")
            event = any_event(chance, sent)
            sent.append(event)
            answer = await way.post(f"/api/v1/history/{NET}/events", {"events": [event.document()]})
            assert answer.status == 202, answer.body
            if answer.body["accepted"]:
                assert answer.body["sequence"] not in self.accepted
                self.accepted[answer.body["sequence"]] = event

    async def keep_reading(self, way: Api, chance: random.Random) -> None:
        last, seen = 0, -1
        while not self.over:
            await until(lambda n=seen: self.over or len(self.accepted) > n, "something is sent", 90)
            seen = len(self.accepted)
            through = await self.read(way, chance.choice(PAIRS))
            assert through >= last, "an API process goes back in time"
            last = through

    async def read(self, way: Api, pair: Pair) -> int:
        """Keeps the answer for the end; returns up to which event it is exact."""
        body = await candles(way, pair)
        self.answers.append((pair, body["applied_through"], body["items"]))
        return int(body["applied_through"])

    def check(self) -> None:
        """Every answer against the events up to the one it says it includes."""
        assert sorted(self.accepted) == list(range(1, len(self.accepted) + 1)), "no hole"
        at_sequence: dict[int, list[tuple[Pair, list[Any]]]] = {}
        for pair, through, items in self.answers:
            at_sequence.setdefault(through, []).append((pair, items))
        model = Model(MINUTE)
        for sequence in range(len(self.accepted) + 1):
            if sequence:
                model.apply(self.accepted[sequence])
            told = at_sequence.get(sequence, [])
            expected = recomputed(model.standing.values()) if told else {}
            for pair, items in told:
                assert items == [ohlcv(each) for each in expected.get(pair, [])], sequence


async def candles(way: Api, pair: Pair, **more: Any) -> Any:
    asked = {"network": NET, "base": str(pair.base), "quote": str(pair.quote), "mode": "ohlcv"}
    answer = await way.get("/api/v1/history/market-rate", **asked, **more)
    assert answer.status == 200, answer.body
    return answer.body


async def kill_the_one_that_applies(
    database: Database, workers: dict[int, Process], tries: int = 60
) -> None:
    """The worker that holds the job just now; any, when it is at rest for long."""
    holder = ""
    for _ in range(tries):
        key = {"unique_key": apply_job(NET).unique_key}
        job = await database.jobs.find_one(key, projection={"lock": 1})
        holder = ((job or {}).get("lock") or {}).get("locked_by") or ""
        if holder:
            break
    number = next((n for n, each in workers.items() if f":{each.pid}:" in holder), 0)
    workers[number].signal(signal.SIGKILL)
    await workers[number].ended()


async def test_every_answer_is_what_the_surviving_trades_make(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    environment = {
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
        "COLLECTOR_DATA": str(tmp_path),
        "COLLECTOR_HISTORY__NETWORKS": json.dumps([NET]),
        "COLLECTOR_HISTORY__CROSS_NET_POLICY": "warn",
        "COLLECTOR_WORKER__LEASE_TTL_MS": str(LEASE_MS),
    }
    storm, chance = Storm(), random.Random(EVENTS)
    async with AsyncExitStack() as stack:
        workers: dict[int, Process] = {}

        async def start(number: int) -> None:
            begun = program("workers", **environment)
            workers[number] = await stack.enter_async_context(begun)

        async def keep_killing() -> None:
            inbox, before = EventInbox(database, NET), 0

            async def came_further() -> bool:
                return (await inbox.state()).applied_through > before

            for _ in range(KILLS):
                await until(came_further, "events are applied between two kills")
                await asyncio.gather(*(storm.read(way, pair) for way in ways for pair in PAIRS))
                await kill_the_one_that_applies(database, workers)
                before = (await inbox.state()).applied_through
                dead = next(n for n, each in workers.items() if not each.running)
                await start(dead)
                storm.kills += 1

        for number in range(2):
            await start(number)
        ways = [await stack.enter_async_context(api_process(**environment)) for _ in range(2)]
        async with asyncio.TaskGroup() as group:
            reading = [
                group.create_task(storm.keep_reading(way, random.Random(number)))
                for number, way in enumerate(ways)
            ]
            async with asyncio.TaskGroup() as sending:
                sending.create_task(keep_killing())
                for way in ways:
                    sender = random.Random(chance.random())
                    sending.create_task(storm.send(way, sender, EVENTS // 2))
            last = max(storm.accepted)
            for way in ways:
                for pair in PAIRS:
                    answer = await _patient(way, pair, last)
                    storm.answers.append((pair, answer["applied_through"], answer["items"]))
            storm.over = True
            await asyncio.gather(*reading)
    storm.check()
    assert sum(through == last for _, through, _ in storm.answers) >= 2 * len(PAIRS)
    assert len({through for _, through, _ in storm.answers}) >= KILLS, "answers came on the way"


async def _patient(way: Api, pair: Pair, after: int) -> Any:
    """A worker that was killed last leaves its lease, which has to run out first."""

    async def answered() -> Any:
        asked = {"network": NET, "base": str(pair.base), "quote": str(pair.quote)}
        answer = await way.get(
            "/api/v1/history/market-rate", **asked, mode="ohlcv", after=after, limit=10_000
        )
        return answer.body if answer.status == 200 else None

    return await until(answered, f"{after} is applied")
