"""The inbox of a network: one order without holes, each event once, and nothing after a hole."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pymongo.errors import BulkWriteError

from collector.errors import DataInvalid
from collector.history import inbox as inboxes
from collector.history.inbox import EventInbox, NetworkState, Receipt, network_states
from collector.history.layout import ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.writer import HistoryWriter
from collector.mongo.client import Database
from collector.store.disk import LocalDisk
from tests.support.history_trades import added, deleted, sale

if TYPE_CHECKING:
    from pathlib import Path

    from collector.history.event import Event

NET = "riemann"
FIRST, SECOND = added("0x1", 0, sale(5)), added("0x2", 0.5, sale(7))


class Desk:
    """An inbox and the ledger that it looks into."""

    def __init__(self, database: Database, root: Path) -> None:
        self.inbox = EventInbox(database, NET)
        self.writer = HistoryWriter(LocalDisk(root), NET)
        self._ledger = LedgerFiles(LocalDisk(root), ledger_folder(NET))

    async def put(self, *events: Event) -> Receipt:
        return await self.inbox.put(events, self._ledger.view)

    async def apply(self) -> None:
        await self.inbox.learn(self.writer.ledger)
        self.writer.apply(await self.inbox.after(self.writer.applied_through, 1_000))
        await self.inbox.applied(self.writer.applied_through)


@pytest.fixture
def desk(database: Database, tmp_path: Path) -> Desk:
    return Desk(database, tmp_path)


async def test_events_get_the_sequences_of_their_order(desk: Desk) -> None:
    assert await desk.put(FIRST, SECOND) == Receipt(2, accepted=2, duplicates=0)
    assert await desk.put(added("0x3", 1, sale(5))) == Receipt(3, accepted=1, duplicates=0)
    read = await desk.inbox.after(0, 10)
    assert [(number, event.tx_hash) for number, event in read] == [
        (1, "0x1"),
        (2, "0x2"),
        (3, "0x3"),
    ]
    assert read[0][1] == replace(FIRST, times=(FIRST.ts,))


async def test_senders_who_meet_leave_no_hole_and_no_sequence_twice(
    desk: Desk, database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with Database(mongo_uri, database.raw.name) as other:
        desks = [desk, Desk(other, tmp_path)]
        posts = [
            desks[number % 2].put(
                *(added(f"0x{number:x}-{each}", number, sale(5)) for each in range(number % 4 + 1))
            )
            for number in range(24)
        ]
        receipts = await asyncio.gather(*posts)
    total = sum(each.accepted for each in receipts)
    assert total == sum(number % 4 + 1 for number in range(24))
    events = await desk.inbox.after(0, 1_000)
    assert [number for number, _ in events] == list(range(1, total + 1))
    # What was sent together stands together.
    groups = [event.tx_hash.split("-")[0] for _, event in events]
    assert sum(one != two for one, two in itertools.pairwise(groups)) == 23


async def test_the_same_event_at_the_same_time_by_two_is_taken_once(
    desk: Desk, database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with Database(mongo_uri, database.raw.name) as other:
        receipts = await asyncio.gather(desk.put(FIRST), Desk(other, tmp_path).put(FIRST))
    assert sorted((each.accepted, each.duplicates) for each in receipts) == [(0, 1), (1, 0)]
    assert {each.sequence for each in receipts} == {1}


@pytest.mark.parametrize("is_applied", [False, True])
async def test_a_repetition_names_the_sequence_that_it_repeats(
    desk: Desk, is_applied: bool
) -> None:
    await desk.put(FIRST, SECOND)
    if is_applied:
        await desk.apply()
        assert await desk.inbox.after(0, 10) == []
    assert await desk.put(FIRST) == Receipt(1, accepted=0, duplicates=1)
    assert await desk.put(SECOND, FIRST) == Receipt(2, accepted=0, duplicates=2)
    assert await desk.put(FIRST, added("0x3", 1, sale(5))) == Receipt(3, 1, 1)


@pytest.mark.parametrize("is_applied", [False, True])
async def test_an_addition_after_a_deletion_counts_again(desk: Desk, is_applied: bool) -> None:
    for number, (event, counts) in enumerate(
        [(FIRST, 1), (deleted(FIRST), 1), (deleted(FIRST), 0), (FIRST, 1), (FIRST, 0)]
    ):
        receipt = await desk.put(event)
        assert (receipt.accepted, receipt.duplicates) == (counts, 1 - counts), number
        if is_applied:
            await desk.apply()


async def test_repetitions_inside_one_request_are_found(desk: Desk) -> None:
    receipt = await desk.put(FIRST, FIRST, deleted(FIRST), deleted(FIRST), FIRST)
    assert receipt == Receipt(3, accepted=3, duplicates=2)


async def test_an_event_with_one_new_input_is_no_repetition(desk: Desk) -> None:
    await desk.put(FIRST)
    longer = added("0x1", 0, sale(5), sale(6))
    assert (await desk.put(longer)).accepted == 1


async def test_a_hole_is_never_passed(desk: Desk, database: Database) -> None:
    await desk.put(*(added(f"0x{each}", each, sale(5)) for each in range(4)))
    await database.history_inbox.delete_one({"sequence": 3})
    assert [number for number, _ in await desk.inbox.after(0, 10)] == [1, 2]
    with pytest.raises(DataInvalid, match="event 3 is missing in the inbox"):
        await desk.inbox.after(2, 10)


async def test_counter_and_rows_are_written_together_or_not_at_all(
    desk: Desk, database: Database
) -> None:
    await database.history_inbox.insert_many([{"network": NET, "sequence": 2, "tx_hash": "x"}])
    with pytest.raises(BulkWriteError):
        await desk.put(FIRST, SECOND)
    assert await desk.inbox.state() == NetworkState(0, 0)
    assert await database.history_inbox.count_documents({}) == 1


@pytest.mark.parametrize("who", ["sender", "worker"])
async def test_a_database_that_was_emptied_learns_from_the_ledger(
    desk: Desk, database: Database, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    monkeypatch.setattr(inboxes, "LEARNT_AT_A_TIME", 2)
    await desk.put(FIRST, SECOND, deleted(FIRST), *(added(f"0x{n}", n, sale(5)) for n in (3, 4)))
    await desk.apply()
    for collection in ("history_networks", "history_transactions"):
        await database.raw[collection].delete_many({})
    if who == "worker":
        await desk.apply()
    assert await desk.put(SECOND) == Receipt(2, accepted=0, duplicates=1)
    assert await desk.put(deleted(FIRST)) == Receipt(3, accepted=0, duplicates=1)
    assert (await desk.put(FIRST, added("0x5", 1, sale(5)))).sequence == 7
    await desk.apply()
    assert desk.writer.applied_through == 7


@pytest.mark.parametrize("is_applied", [False, True])
@pytest.mark.parametrize(
    "event",
    [
        added("0x7", 0, sale(5, payout=0)),
        added("0x7", 0, sale(5, value=4, residual=4)),
        deleted(added("0x7", 0, sale(5))),
    ],
    ids=["no payout", "not executed", "a deletion of nothing"],
)
async def test_an_event_without_effect_is_known_as_long_as_any(
    desk: Desk, event: Event, is_applied: bool
) -> None:
    assert (await desk.put(event)).accepted == 1
    if is_applied:
        await desk.apply()
    later = replace(event, ts=event.ts + 3_600_000)
    assert await desk.put(event, later) == Receipt(1, accepted=0, duplicates=2)


async def test_applied_events_leave_the_inbox_and_the_state_says_so(
    desk: Desk, database: Database
) -> None:
    await desk.put(FIRST, SECOND)
    assert await network_states(database) == {NET: NetworkState(2, 0)}
    await desk.apply()
    assert await network_states(database) == {NET: NetworkState(2, 2)}
    assert await database.history_inbox.count_documents({}) == 0
