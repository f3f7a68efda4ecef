"""One false answer changes nothing: backfills of an exchange that answers another question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.jobs.states import State
from collector.market.interval import Interval
from collector.simulated.faults.answers import Empty
from collector.simulated.faults.pages import IgnoresSince, OtherSymbol, Stale
from collector.simulated.faults.rows import Dropped, Duplicates
from tests.support.local_collector import DAY, MINUTE, Collecting, collecting, no_more_gap_jobs
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))
DAYS = 30


async def whole_history(c: Collecting) -> Interval:
    """Runs a backfill and the gap jobs that follow from it."""
    until = c.first_ms + DAYS * DAY
    job = await c.backfill(until)
    await c.until(job, lambda job: job.state is State.SUCCESS)
    await no_more_gap_jobs(c)
    return Interval(c.first_ms, until)


def assert_true(c: Collecting, span: Interval) -> None:
    assert c.stored(0, span.to_ms) == c.truth(span.from_ms, span.to_ms)
    table = c.store.rows(c.series, span.from_ms, span.to_ms)
    assert len(table) == DAYS * 1440
    assert not any(table.column("is_gap").to_pylist())


async def test_an_answer_that_ignores_since_settles_nothing(
    database: Database, tmp_path: Path
) -> None:
    """D1: on page 5, it had ended the backfill and settled the rest as `no_trade`."""
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        page = c.first_ms + 3_990 * MINUTE, c.first_ms + 4_990 * MINUTE
        c.exchange.faults.add(IgnoresSince(spans=(page,), times=1))
        assert_true(c, await whole_history(c))
        pages = -(-DAYS * 1440 // 1000)
        assert len(c.journal()) <= pages + 8


@pytest.mark.parametrize("count", [1, 2])
async def test_a_false_first_answer_does_not_lose_the_history(
    database: Database, tmp_path: Path, count: int
) -> None:
    """D2: the first bar was taken from one answer."""
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        c.exchange.faults.add(IgnoresSince(count=count))
        assert_true(c, await whole_history(c))


async def test_a_second_answer_is_doubted_like_the_first(
    database: Database, tmp_path: Path
) -> None:
    """D3: a second answer, about one missing row, is another symbol's from there on."""
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        at = c.first_ms + 4_500 * MINUTE
        c.exchange.faults.add(Dropped(spans=((at, at + MINUTE),)))
        second = at - 400 * MINUTE, at + MINUTE
        c.exchange.faults.add(OtherSymbol(spans=(second,), times=1))
        assert_true(c, await whole_history(c))


async def test_an_empty_first_answer_uses_up_nothing(database: Database, tmp_path: Path) -> None:
    """D4: every first answer is empty, and every second one lacks a row."""
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        c.exchange.faults.add(Empty(once=True), Dropped(ratio=0.001))
        assert_true(c, await whole_history(c))


async def test_pages_of_another_symbol_are_not_stored(database: Database, tmp_path: Path) -> None:
    """D5: two pages of a hundred, and the very first one."""
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        first = c.first_ms - 10 * MINUTE, c.first_ms + MINUTE
        c.exchange.faults.add(OtherSymbol(spans=(first,), times=1), OtherSymbol(probability=0.02))
        assert_true(c, await whole_history(c))


async def test_stale_replicas_leave_nothing_out(database: Database, tmp_path: Path) -> None:
    """Some answers come from a replica that is 20 days behind."""
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        c.exchange.faults.add(Stale(minutes=20 * 1440, probability=0.1))
        assert_true(c, await whole_history(c))


async def test_duplicated_rows_do_not_cut_a_page(database: Database, tmp_path: Path) -> None:
    """D13: rows were counted instead of slots."""
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        c.exchange.faults.add(Duplicates(ratio=0.001))
        assert_true(c, await whole_history(c))
        assert len(c.journal()) <= -(-DAYS * 1440 // 999) + 2


async def test_every_kind_of_lie_at_once(database: Database, tmp_path: Path) -> None:
    lies: list[Any] = [
        IgnoresSince(probability=0.02),
        OtherSymbol(probability=0.02, other="ETHUSDT"),
        Stale(minutes=5 * 1440, probability=0.02),
        Empty(once=False, probability=0.02),
        Dropped(ratio=0.0005),
    ]
    async with collecting(database, tmp_path, days=DAYS + 2, config=CONFIG) as c:
        c.exchange.faults.add(*lies)
        assert_true(c, await whole_history(c))
