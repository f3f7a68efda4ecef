"""Events on their way from the inbox into the ledger, by a worker."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from collector import metrics
from collector.history.bucket_files import BucketFiles
from collector.history.inbox import EventInbox, NetworkState
from collector.history.layout import buckets_folder
from collector.history.policy import CrossNet
from collector.history.reader import HistoryReader
from collector.history.sources import PostedEvents
from collector.history.terms import HistoryTerms
from collector.history.writer import HistoryWriter, Overtaken
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.operations import job_changes
from collector.operations.history_events import EventIntake, apply_job, ensure_apply_jobs
from collector.store.disk import LocalDisk
from collector.store.port import Swapped
from collector.store.store import Store
from tests.integration.test_worker_runtime import CONFIG, working
from tests.support.history_trades import GOLD, OIL, PAIR, added, at, deleted, sale
from tests.support.until import until
from workers.handlers.history_apply import HistoryApply

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from collector.history.event import Event
    from collector.history.inbox import Receipt
    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from workers.runtime import Worker

NET = "riemann"
TERMS = HistoryTerms((NET, "other"))
FIRST, SECOND = added("0x1", 0, sale(5)), added("0x2", 0.5, sale(7))


class Network:
    """What its users do with it: send events, and read."""

    def __init__(self, database: Database, root: Path) -> None:
        self.database = database
        self.root = root
        self.inbox = EventInbox(database, NET)
        self.intake = EventIntake(database, Store(root), TERMS)
        self.reader = HistoryReader(NET, GOLD, OIL, root)

    def worker(
        self, terms: HistoryTerms = TERMS, worker_id: str = "w1"
    ) -> AbstractAsyncContextManager[Worker]:
        handler = HistoryApply(self.database, Store(self.root), terms)
        config = replace(CONFIG, networks=terms.networks, worker_id=worker_id)
        return working(self.database, {"history_apply": handler}, config)

    async def send(self, *events: Event) -> Receipt:
        return await self.intake.take(NET, PostedEvents([each.document() for each in events]))

    async def applied(self, through: int) -> None:
        async def reached() -> bool:
            return (await self.inbox.state()).applied_through >= through

        await until(reached, f"applied through {through}")

    async def job(self) -> Job:
        key = apply_job(NET).unique_key
        [found] = await self.database.jobs.find({"unique_key": key, "status": {"$ne": "deleted"}})
        return await JobQueue(self.database).get(found["_id"])

    async def at_rest(self) -> Job:
        async def idle() -> bool:
            return (await self.job()).state is State.IDLE

        await until(idle, "the job is at rest")
        return await self.job()


@pytest.fixture
def network(database: Database, tmp_path: Path) -> Network:
    return Network(database, tmp_path)


async def test_a_worker_applies_what_is_sent_and_the_job_says_how_far(network: Network) -> None:
    async with network.worker():
        await network.send(FIRST, SECOND)
        await network.applied(2)
        job = await network.at_rest()
    assert job.document["cursor"] == {"applied_through": 2, "done": False}
    assert network.reader.volume()["trades"] == 2
    assert network.reader.volume()["applied_through"] == 2
    assert await network.database.history_inbox.count_documents({}) == 0
    assert await network.database.connectors.count_documents({}) == 0, "a network needs none"


async def test_buckets_are_saved_when_a_job_has_nothing_more_to_do(network: Network) -> None:
    async with network.worker():
        await network.send(FIRST, SECOND)
        await network.applied(2)
        await network.at_rest()
    saved = BucketFiles(LocalDisk(network.root), buckets_folder(NET)).manifest()
    assert saved is not None
    assert saved.applied_through == 2


async def test_events_that_came_before_any_worker_are_applied_when_one_starts(
    network: Network,
) -> None:
    await network.send(FIRST)
    await network.send(deleted(FIRST))
    async with network.worker():
        await network.applied(2)
    assert network.reader.market_rate("ohlcv")["items"] == []


async def test_a_job_that_is_woken_while_it_runs_runs_once_more(network: Network) -> None:
    """The run may have looked into the inbox a moment before the event was there."""
    queue = JobQueue(network.database)
    job, _ = await queue.add(JobSpec("_history/riemann", "history_apply"))
    running = {"state": State.RUNNING.value, "next_run_at": 2**50}
    await network.database.jobs.update_one({"_id": job.id}, {"$set": running})
    await network.send(FIRST)
    document = (await queue.get(job.id)).document
    assert document["run_again"]
    assert document["next_run_at"] == 2**50, "its lease's end is the worker's"


async def test_waking_leaves_a_paused_job_paused(network: Network) -> None:
    await ensure_apply_jobs(network.database, TERMS)
    job = await JobQueue(network.database).pause((await network.job()).id)
    await network.send(FIRST)
    after = await network.job()
    assert (after.status, after.state) == (Status.PAUSED, job.state)
    async with network.worker():
        await job_changes.resume(network.database, str(job.id))
        await network.applied(1)


async def test_a_deleted_job_is_made_again_by_the_next_event(network: Network) -> None:
    await ensure_apply_jobs(network.database, TERMS)
    await JobQueue(network.database).delete((await network.job()).id)
    await network.send(FIRST)
    assert (await network.job()).status is Status.ACTIVE


async def test_what_a_dead_worker_left_undone_is_done_by_the_next(network: Network) -> None:
    """It died after the ledger was written: inbox, cursor and state had not followed."""
    await network.send(FIRST, SECOND)
    dead = HistoryWriter(LocalDisk(network.root), NET, fence=0)
    dead.apply(await network.inbox.after(0, 10))
    assert await network.inbox.state() == NetworkState(2, 0)
    async with network.worker():
        await network.applied(2)
        job = await network.at_rest()
    assert job.document["cursor"]["applied_through"] == 2
    assert network.reader.volume()["trades"] == 2, "nothing was applied twice"
    assert await network.database.history_inbox.count_documents({}) == 0


async def test_two_workers_take_turns_and_agree(network: Network) -> None:
    async with network.worker(), network.worker(worker_id="w2"):
        for number in range(12):
            await network.send(added(f"0x{number}", number / 4, sale(number + 1)))
            await network.applied(number + 1)
    assert network.reader.volume()["trades"] == 12
    fresh = HistoryWriter(LocalDisk(network.root), NET, fence=2**40)
    assert fresh.applied_through == 12


async def test_an_overtaken_writer_writes_nothing_more(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    old = HistoryWriter(disk, NET, fence=5)
    old.apply([(1, FIRST)])
    new = HistoryWriter(disk, NET, fence=6)
    assert new.applied_through == 1
    files = sorted(tmp_path.rglob("*"))
    for step in (lambda: old.apply([(2, SECOND)]), old.save):
        with pytest.raises(Overtaken):
            step()
    assert sorted(tmp_path.rglob("*")) == files
    old.resume(5)
    with pytest.raises(Overtaken, match="fence 6 is after 5"):
        _ = old.applied_through
    new.apply([(2, SECOND)])
    new.save()
    assert new.applied_through == 2


async def test_a_save_that_was_under_way_at_a_takeover_is_refused(tmp_path: Path) -> None:
    """Its files are swept by the successor: had it counted, they would be missing."""
    disk = LocalDisk(tmp_path)
    old = HistoryWriter(disk, NET, fence=5)
    old.apply([(1, FIRST)])
    state = old._opened()
    made = old.buckets.with_months(state.manifest, state.history.changed(), 1)
    new = HistoryWriter(disk, NET, fence=6)
    assert new.applied_through == 1
    with pytest.raises(Swapped, match="replaced by someone else"):
        old.buckets.write(replace(made, applied_through=1), state.stamp)
    assert HistoryReader(NET, GOLD, OIL, tmp_path).volume()["trades"] == 1


async def test_metrics_tell_trades_by_outcome_and_rebuilds(network: Network) -> None:
    def trades(outcome: str) -> float:
        return metrics.HISTORY_TRADES.labels(NET, outcome)._value.get()

    before = {name: trades(name) for name in ("added", "deleted", "no_payout", "unmatched")}
    rebuilds = metrics.HISTORY_REBUILDS.labels(NET)._value.get()
    async with network.worker():
        await network.send(FIRST, SECOND, added("0x3", 1, sale(5, payout=0)))
        await network.send(deleted(FIRST), deleted(added("0x9", 3, sale(1))))
        await network.applied(5)
    counted = {name: trades(name) - value for name, value in before.items()}
    assert counted == {"added": 2, "deleted": 1, "no_payout": 1, "unmatched": 1}
    assert metrics.HISTORY_REBUILDS.labels(NET)._value.get() == rebuilds + 1


async def test_buckets_of_another_length_are_made_while_reads_go_on(network: Network) -> None:
    """From 60 to 30 seconds and back. Every answer is whole, of one length or of the other."""
    events = [added(f"0x{number}", number / 8, sale(number % 7 + 1)) for number in range(48)]
    async with network.worker():
        await network.send(*events)
        await network.applied(len(events))
    expected = network.reader.market_rate("ohlcv", bucket=60)["items"]
    reading, reads = asyncio.Event(), 0

    async def keep_reading() -> None:
        nonlocal reads
        reader = HistoryReader(NET, GOLD, OIL, network.root)
        while not reading.is_set():
            answer = await asyncio.to_thread(reader.market_rate, "ohlcv", bucket=60)
            assert answer["items"] == expected
            reads += 1

    async def of_length(seconds: int) -> None:
        reader = HistoryReader(NET, GOLD, OIL, network.root)

        async def is_so() -> bool:
            items = (await asyncio.to_thread(reader.market_rate, "ohlcv"))["items"]
            return bool(items[1]["ts"] - items[0]["ts"] == seconds * 1000)

        await until(is_so, f"buckets of {seconds} s")

    task = asyncio.create_task(keep_reading())
    try:
        for seconds in (30, 60):
            terms = replace(TERMS, bucket_sec=seconds)
            async with network.worker(terms, worker_id=f"w{seconds}"):
                await JobQueue(network.database).run((await network.at_rest()).id)
                await of_length(seconds)
            at_30 = network.reader.market_rate("ohlcv", at(0), at(1), bucket=60)["items"]
            assert at_30 == expected[:1]
    finally:
        reading.set()
        await task
    assert reads > 2


async def test_a_length_that_cannot_hold_the_sums_leaves_the_old_one(network: Network) -> None:
    most = (1 << 256) - 1
    whole = sale(1, value=most)
    async with network.worker():
        await network.send(added("0x1", 0, whole), added("0x2", 1, whole))
        await network.applied(2)
        await network.at_rest()
    async with network.worker(replace(TERMS, bucket_sec=120), worker_id="w2"):
        await network.send(added("0x3", 5, sale(1)))
        await network.applied(3)
    assert len(network.reader.market_rate("ohlcv", bucket=60)["items"]) == 3


async def test_trades_between_nets_follow_the_policy(network: Network) -> None:
    far = replace(PAIR, quote=replace(PAIR.quote, net_id="2"))
    async with network.worker():
        await network.send(added("0x1", 0, sale(5, pair=far)))
        await network.applied(1)
        await network.at_rest()
    async with network.worker(replace(TERMS, cross_net=CrossNet.WARN), worker_id="w2"):
        await network.send(added("0x2", 0, sale(5, pair=far)))
        await network.applied(2)
    reader = HistoryReader(NET, far.base, far.quote, network.root)
    assert reader.volume()["trades"] == 1
