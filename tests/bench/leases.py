"""Leases a second, with ten thousand to a million jobs, and beside an exchange that is blocked.

The cost of a lease must not depend on how many jobs there are or on what other exchanges have
piled up. What is claimed in a round is given back after it, outside the time that counts.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from collector.jobs import settlement
from collector.jobs.lease_statements import RUNNING_INDEX
from collector.jobs.leasing import Leasing
from collector.jobs.states import State
from collector.lease_terms import LeaseTerms
from collector.mongo.client import NOW_MS
from tests.bench.backlog import HOUR_MS, keys_examined, load, server_cpu_ms
from tests.bench.harness import Bench, Figure, Samples, in_turn, ratio

if TYPE_CHECKING:
    from collector.mongo.client import Database

RESTING = "resting"
EXCHANGES = [f"exchange{number}" for number in range(19)]
BATCH = 16
CACHE = "2GB"
AT_LEAST = 0.8
BLOCKED_JOBS = 100_000  # half of them due
OPEN_JOBS = 4_000
TERMS = LeaseTerms(ttl_ms=3_600_000)
_ALL = [*EXCHANGES, RESTING]
_ONE_OF_ALL = {"$arrayElemAt": [_ALL, {"$mod": ["$n", len(_ALL)]}]}


@dataclass(frozen=True, slots=True)
class Round:
    """Who claims how in one round; `leases` is how many they take together."""

    title: str
    leasers: int
    wanted: int
    leases: int
    exchanges: tuple[str, ...] = tuple(EXCHANGES)
    settled: bool = False


ROUNDS = (
    Round("1 leaser", 1, 1, 40),
    Round("8 leasers", 8, 1, 120),
    Round("1 leaser, batches of 16", 1, BATCH, 160),
    Round("8 leasers, batches of 16", 8, BATCH, 480),
    Round("8 leasers on one exchange", 8, 1, 120, (EXCHANGES[0],)),
    Round("8 leasers, lease and settle", 8, 1, 80, settled=True),
)


async def run(bench: Bench) -> list[Figure]:
    return [*await _by_size(bench), *await _beside_blocked(bench)]


async def _by_size(bench: Bench) -> list[Figure]:
    sizes = {"10k": 10_000, "100k": 100_000} | ({"1M": 1_000_000} if bench.million else {})
    async with AsyncExitStack() as stack:
        databases: dict[str, Database] = {}
        await _give_room(bench)
        for name, jobs in sizes.items():
            database = await stack.enter_async_context(bench.database(migrated=False))
            started = time.monotonic()
            await load(database, jobs, _ONE_OF_ALL, resting=RESTING)
            bench.console.print(f"{name} jobs loaded in {time.monotonic() - started:.0f} s")
            databases[name] = database
        measured: dict[str, Samples] = {}
        costs: dict[str, Samples] = {}
        for each in ROUNDS[: bench.pick(None, 4)]:
            cost = costs[each.title] = {name: [] for name in databases}
            measured[each.title] = await in_turn(
                {
                    name: partial(_claim, database, each, cost[name])
                    for name, database in databases.items()
                },
                rounds=bench.pick(15, 5),
                settled=_flat,
            )
        keys = {
            name: max([await keys_examined(database, exchange) for exchange in _ALL])
            for name, database in databases.items()
        }
    _show(bench, "leases/s by jobs in the collection, half of them due", measured)
    _show(bench, "mongod's processor time a lease, ms", costs)
    return [*_size_figures(measured), *_cost_figures(costs, keys)]


async def _give_room(bench: Bench) -> None:
    """A cache that holds a million jobs.

    The embedded mongod's holds a quarter of a gigabyte: with a million jobs eight leasers in
    batches then measure its eviction and get half as far. A mongod that is given half the memory
    of its machine, as by default, knows no difference.
    """
    async with bench.database(migrated=False) as database:
        await database.raw.client.admin.command(
            {"setParameter": 1, "wiredTigerEngineRuntimeConfig": f"cache_size={CACHE}"}
        )


async def _claim(database: Database, each: Round, costs: list[float]) -> float:
    """Leases a second in one round; adds to `costs` what one of them cost mongod."""
    taken = 0

    async def claim(number: int) -> None:
        nonlocal taken
        leasing = Leasing(database, f"leaser{number}", terms=TERMS)
        # As workers do: from exchange to exchange, each beginning with another one.
        turn = number * len(each.exchanges) // each.leasers
        while taken < each.leases:
            exchange = each.exchanges[turn % len(each.exchanges)]
            leases = await leasing.claim(exchange, each.wanted)
            turn += 1
            if each.settled:
                for lease in leases:
                    await leasing.settle(lease, settlement.give_back())
            taken += len(leases)

    cpu_ms, started = await server_cpu_ms(database), time.monotonic()
    async with asyncio.timeout(120):
        await asyncio.gather(*(claim(number) for number in range(each.leasers)))
    rate = taken / (time.monotonic() - started)
    costs.append((await server_cpu_ms(database) - cpu_ms) / taken)
    await _put_back(database)
    return rate


async def _put_back(database: Database) -> None:
    """What `give_back` does to one job, to all that are held, in one statement."""
    unlocked = {"locked_by": None, "lock_until": None, "lease_token": None}
    fields = {"state": State.QUEUED.value, "next_run_at": NOW_MS, "lock": unlocked, "attempt": 0}
    await database.jobs.update_many(
        {"state": State.RUNNING.value}, [{"$set": fields}], hint=RUNNING_INDEX
    )


async def _beside_blocked(bench: Bench) -> list[Figure]:
    """The leases of one exchange with and without the backlog of another that nobody leases."""
    each = Round("open exchange", 8, 1, 120, ("open",))
    beside = {"$cond": [{"$lt": ["$n", OPEN_JOBS]}, "open", "blocked"]}
    async with (
        bench.database(migrated=False) as quiet,
        bench.database(migrated=False) as crowded,
    ):
        await load(quiet, OPEN_JOBS, {"$literal": "open"})
        await load(crowded, OPEN_JOBS + BLOCKED_JOBS, beside)
        await _far_off(quiet)
        await _far_off(crowded)
        databases = {"alone": quiet, "beside 50k due": crowded}
        samples = await in_turn(
            {name: partial(_claim, database, each, []) for name, database in databases.items()},
            rounds=bench.pick(15, 5),
            settled=_flat,
        )
        keys = await keys_examined(crowded, "open")
        looks = await in_turn(
            {name: partial(_idle_look_ms, database) for name, database in databases.items()},
            rounds=bench.pick(5, 3),
        )
    bench.show(
        "an exchange beside a blocked one",
        ["", *databases],
        [
            ["leases/s", *(median(samples[name]) for name in databases)],
            ["idle look, ms", *(median(looks[name]) for name in databases)],
        ],
    )
    return [
        Figure(
            "leases.beside blocked / alone",
            ratio(samples, "beside 50k due", "alone"),
            at_least=AT_LEAST,
        ),
        Figure("leases.keys examined beside blocked", keys, " keys", at_most=10),
        Figure("leases.idle look beside blocked / alone", ratio(looks, "beside 50k due", "alone")),
    ]


async def _far_off(database: Database) -> None:
    """Moves the open exchange's next jobs behind all of the blocked one's."""
    later = {"next_run_at": {"$add": ["$next_run_at", 2 * HOUR_MS]}}
    await database.jobs.update_many(
        {"exchange_id": "open", "state": State.IDLE.value}, [{"$set": later}]
    )


async def _idle_look_ms(database: Database) -> float:
    """How long a worker without work takes to find out when the next job is due."""
    leasing = Leasing(database, "idle")
    started = time.monotonic()
    await leasing.next_due_ms(["open"], database.server_clock.now_ms())
    return (time.monotonic() - started) * 1000


def _flat(samples: Samples) -> bool:
    """Whether nobody falls behind the first contender."""
    first, *others = samples
    return all(ratio(samples, other, first) >= AT_LEAST for other in others)


def _show(bench: Bench, title: str, measured: dict[str, Samples]) -> None:
    sizes = next(iter(measured.values()))
    rows = [[way, *(median(samples[size]) for size in sizes)] for way, samples in measured.items()]
    bench.show(title, ["", *sizes], rows)


def _size_figures(measured: dict[str, Samples]) -> list[Figure]:
    return [
        Figure(f"leases.{size} / 10k, {way}", ratio(samples, size, "10k"), at_least=AT_LEAST)
        for way, samples in measured.items()
        for size in samples
        if size != "10k"
    ]


def _cost_figures(costs: dict[str, Samples], keys: dict[str, int]) -> list[Figure]:
    """What the machine's other work does not disturb: if these are flat, so are leases."""
    return [
        *(
            Figure(f"leases.mongod's time {size} / 10k, {way}", ratio(samples, size, "10k"))
            for way, samples in costs.items()
            for size in samples
            if size != "10k"
        ),
        *(
            Figure(f"leases.keys examined, {size}", count, " keys", at_most=10)
            for size, count in keys.items()
        ),
    ]
