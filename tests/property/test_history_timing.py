"""The same requests give the same trades, whenever events are applied between them."""

from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.history.event import parse_event
from collector.history.inbox import EventInbox
from collector.history.layout import ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.policy import CrossNet
from collector.history.refusal import Refused
from collector.history.writer import HistoryWriter
from collector.mongo.client import Database
from collector.store.disk import LocalDisk
from migrations import runner as migrations
from tests.property.test_history import PAIRS, events
from tests.support.examples import examples
from tests.support.history_trades import Model, read, recomputed

if TYPE_CHECKING:
    from collector.history.event import Event

NET = "net"


def can_be_sent(event: Event) -> bool:
    try:
        parse_event(event.document())
    except Refused:
        return False
    return True


requests = st.lists(events().filter(can_be_sent), min_size=1, max_size=4)
lengths = st.sampled_from([1, 60, 7 * 86_400])
timings = st.sampled_from(["later", "now", "restart"])


def test_the_same_requests_give_the_same_trades_whenever_they_are_applied(
    mongo_uri: str, database_name: str
) -> None:
    with asyncio.Runner() as runner:
        database = Database(mongo_uri, database_name)
        runner.run(migrations.up(database))

        @settings(max_examples=examples(120), deadline=None)
        @given(st.lists(st.tuples(requests, timings), max_size=8), lengths)
        def any_timing(sent: list[tuple[list[Event], str]], bucket_sec: int) -> None:
            runner.run(same_trades(database, sent, bucket_sec))

        try:
            any_timing()
        finally:
            runner.run(database.raw.client.drop_database(database_name))
            runner.run(database.close())


async def same_trades(
    database: Database, sent: list[tuple[list[Event], str]], bucket_sec: int
) -> None:
    """Sends, and applies when the timing says so. The model knows nothing of timings."""
    for name in ("history_networks", "history_inbox", "history_transactions"):
        await database.raw[name].delete_many({})
    inbox, model = EventInbox(database, NET), Model(bucket_sec * 1000)
    with tempfile.TemporaryDirectory() as folder:
        disk = LocalDisk(folder)
        ledger = LedgerFiles(disk, ledger_folder(NET))
        writer = HistoryWriter(disk, NET, bucket_sec=bucket_sec, cross_net=CrossNet.WARN)
        for body, timing in [*sent, ([], "now")]:
            fresh = sum([model.apply(each) for each in body])
            if body:
                receipt = await inbox.put(body, ledger.view)
                assert (receipt.accepted, receipt.duplicates) == (fresh, len(body) - fresh)
            if timing == "restart":
                writer = HistoryWriter(disk, NET, bucket_sec=bucket_sec, cross_net=CrossNet.WARN)
            if timing != "later":
                writer.apply(await inbox.after(writer.applied_through, 1_000))
                await inbox.applied(writer.applied_through)
        expected = recomputed(model.standing.values(), bucket_sec * 1000)
        for pair in PAIRS:
            assert read(writer.history, pair) == expected.get(pair, [])
