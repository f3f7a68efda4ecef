"""Crowds of processes on one lake, on disk and in a real object store, killed at any moment."""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.fs import FileSystem

from collector.connectors.connector import Limits
from collector.market.series import Series
from collector.reader import CandleReader
from collector.store import compaction, part, segment, snapshot
from tests.support.bars import BTC, ETH, at, flat, span
from tests.support.faulty_proxy import Trouble, faulty_proxy
from tests.support.fleet import LONG, fleet
from tests.support.lakes import Lake
from tests.support.processes import program
from tests.support.store_stories import WINDOW, World, lived_through, stories
from tests.support.until import until

if TYPE_CHECKING:
    from collector.mongo.client import Database

SLOTS = 2_000 if LONG else 160
APPENDERS, MERGERS = 2, 2


async def appended(lake: Lake, first: int, rng: random.Random) -> list[int]:
    """Runs one appender to its end through kills; returns every slot that was called durable."""
    durable: list[int] = []
    start = first
    while start < SLOTS:
        slots = [str(number) for number in (start, APPENDERS, SLOTS)]
        async with program(
            "tests.acceptance.lake_hand", "--root", lake.root, "--slots", *slots
        ) as process:
            patience = rng.randrange(30, 100)
            while patience and (line := await process.line()):
                durable.append(int(line))
                patience -= 1
        # It is killed here. What it was writing is written again, as a cursor would have it.
        start = durable[-1] + APPENDERS if durable else first
    return durable


async def merging(lake: Lake, rng: random.Random, merged: list[int]) -> None:
    """Starts a merger, kills it in the middle of something, and starts the next one."""
    while True:
        async with program("tests.acceptance.lake_hand", "--root", lake.root) as process:
            for _ in range(rng.randrange(4, 20)):
                assert await process.line(), process.said
                merged.append(1)
            await asyncio.sleep(rng.random() / 20)


async def test_two_append_and_two_merge_and_all_of_them_die(lake: Lake) -> None:
    """Nothing that was durable is lost and nothing is there twice."""
    rng = random.Random(8)
    merged: list[int] = []
    mergers = [asyncio.create_task(merging(lake, rng, merged)) for _ in range(MERGERS)]
    told = await asyncio.gather(*(appended(lake, first, rng) for first in range(APPENDERS)))
    for task in mergers:
        task.cancel()
    ends = await asyncio.gather(*mergers, return_exceptions=True)
    assert not [end for end in ends if not isinstance(end, asyncio.CancelledError)]
    assert len(merged) > MERGERS
    check_all_there(lake, sorted(slot for durable in told for slot in durable))
    store = lake.store()
    for series in (BTC, ETH):
        store.compact(series)
    store.sweep("binance")
    check_all_there(lake, list(range(SLOTS)))
    assert not [path for path in lake.everything() if "/parts/" in path]
    for path in lake.everything():
        if path.endswith(".sha256"):
            digest = hashlib.sha256(lake.read(path.removesuffix(".sha256"))).hexdigest()
            assert lake.read(path).decode().split()[0] == digest


def check_all_there(lake: Lake, durable: list[int]) -> None:
    table = lake.store().rows(BTC, at(0), at(SLOTS))
    assert table["ts"].to_pylist() == [at(slot) for slot in range(SLOTS)]
    assert not any(table["is_gap"].to_pylist())
    assert table["o"].to_pylist() == [slot + 1.0 for slot in range(SLOTS)]
    assert table["ver"].to_pylist() == [1] * SLOTS
    assert set(durable) == set(range(SLOTS))


async def test_a_backfill_lives_through_an_object_store_that_fails(
    database: Database, mongo_uri: str, bucket: Lake
) -> None:
    """Some requests are refused or cut off for a while, then all are refused."""
    here = bucket.beside(secrets.token_hex(6))
    rng = random.Random(5)
    with faulty_proxy(here.options.rpartition("=")[2]) as proxy:
        far = Lake(here.place, f"?scheme=http&endpoint_override={proxy.host}")
        limits = Limits(30, 1_000)
        async with fleet(database, mongo_uri, far.root, limits=limits) as f:
            job = await f.backfill(days=38)

            async def stepped_back() -> bool:
                error = (await f.queue.get(job.id)).document["stats"]["last_error"]
                return "the object store" in (error or "")

            async with f.worker():
                await f.reaches(job, 3)
                proxy.rule = lambda _method, _path: rng.choice(list(Trouble)[:4] + [None] * 8)
                await f.reaches(job, 20)
                proxy.rule = lambda _method, _path: Trouble.INTERNAL
                await until(stepped_back, "the job steps back")
                proxy.rule = lambda _method, _path: None
                done = await f.finished(job, 120)
            f.check_equal_to_the_truth(done)
            f.check_no_window_was_exceeded()
            store = here.store()
            store.compact(Series.of("simulated", "BTC/USDT", "1m"))
            store.sweep("simulated")
            f.check_equal_to_the_truth(done)
    assert not [path for path in here.everything() if "/parts/" in path or ".corrupt" in path]


def test_any_tool_reads_what_is_in_the_bucket(bucket: Lake) -> None:
    here = bucket.beside(secrets.token_hex(6))
    store = here.store()
    written = flat(0, 50)
    store.append_page(BTC, written, span(0, 50), fence=1, known_at=1)
    store.compact(BTC)
    system, path = FileSystem.from_uri(f"{here.place}/binance/BTC-USDT/1m.parquet{here.options}")
    table = pq.read_table(path, filesystem=system)
    assert table["o"].to_pylist() == written.o.tolist()
    frame = CandleReader("BTC/USDT", "1m", "binance", root=here.root).read()
    assert frame["o"].tolist() == written.o.tolist()


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segment, part, snapshot, compaction):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", WINDOW)


@pytest.mark.usefixtures("_small")
def test_any_story_ends_as_last_wins_says(bucket: Lake) -> None:
    @settings(max_examples=300 if LONG else 40, deadline=None)
    @given(stories, st.booleans(), st.permutations(range(1_000, 1_100)))
    def story(told: list[Any], versions: bool, moments: list[int]) -> None:
        order = sorted(moments) if versions else list(moments)
        lived_through(World(bucket.beside(secrets.token_hex(6)), order), told, versions=versions)

    story()
