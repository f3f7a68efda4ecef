"""Group commit: one write for many, nothing acknowledged before it is durable."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from typing import TYPE_CHECKING

import pytest

from collector.errors import StoreError
from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.store.disk import LocalDisk
from collector.store.group_commit import GroupCommit
from collector.store.port import StorageFault, Unavailable
from collector.store.store import Store
from tests.support.bars import BTC, at, flat, span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Disk:
    """A disk whose writes can be held up and made to fail."""

    def __init__(self, root: Path) -> None:
        self.go = threading.Event()
        self.go.set()
        self.started = threading.Event()
        self.writes = 0
        self.full = False
        self.store = Store(LocalDisk(root, self._hook))

    def _hook(self, point: StorageFault, _path: str) -> None:
        if point is StorageFault.BEFORE_FSYNC:
            self.started.set()
            self.go.wait(30)
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if point is StorageFault.AFTER_WRITE:
            self.writes += 1


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path)
    yield disk
    disk.go.set()


def series(number: int) -> Series:
    return Series.of("binance", f"C{number}/USDT", "1m")


async def add(commit: GroupCommit, number: int, slot: int = 0) -> None:
    await commit.add(series(number), flat(slot, 1), span(slot, slot + 1), fence=1, known_at=slot)


async def held_up(disk: Disk) -> None:
    """Returns when a write has begun and waits."""
    assert await asyncio.to_thread(disk.started.wait, 30)


async def test_an_answer_that_comes_alone_waits_for_no_other(disk: Disk) -> None:
    async with GroupCommit(disk.store, "binance", gather_s=3600) as commit, asyncio.timeout(20):
        waiting = asyncio.create_task(add(commit, 1))
        await asyncio.sleep(0)
        await commit.add(BTC, flat(0, 1), span(0, 1), fence=1, known_at=1, alone=True)
        await waiting
    assert disk.writes == 1, "what had been gathered by then is written with it"


async def test_answers_of_a_moment_share_one_write(disk: Disk) -> None:
    async with GroupCommit(disk.store, "binance", gather_s=0.05) as commit:
        await asyncio.gather(*(add(commit, number) for number in range(300)))
    assert disk.writes == 1
    assert len(disk.store.series()) == 300


async def test_nobody_is_told_before_it_is_durable(disk: Disk, tmp_path: Path) -> None:
    disk.go.clear()
    async with GroupCommit(disk.store, "binance", gather_s=0.0) as commit:
        waiting = asyncio.create_task(add(commit, 1))
        await held_up(disk)
        assert not waiting.done()
        assert Store(tmp_path).series() == ()
        disk.go.set()
        await waiting
        assert Store(tmp_path).series() == (series(1),)


async def test_a_full_group_does_not_wait(disk: Disk) -> None:
    async with GroupCommit(disk.store, "binance", gather_s=3600, most_bars=3) as commit:
        await asyncio.gather(*(add(commit, number) for number in range(3)))
    assert disk.writes == 1


async def test_leaving_writes_the_rest_at_once(disk: Disk) -> None:
    async with GroupCommit(disk.store, "binance", gather_s=3600) as commit:
        waiting = asyncio.create_task(add(commit, 1))
        await asyncio.sleep(0)
    await waiting
    assert disk.writes == 1
    with pytest.raises(StoreError, match="closed"):
        await add(commit, 2)


async def test_while_a_part_is_written_the_next_one_gathers(disk: Disk) -> None:
    disk.go.clear()
    async with GroupCommit(disk.store, "binance", gather_s=0.0) as commit:
        first = asyncio.create_task(add(commit, 0))
        await held_up(disk)
        later = [asyncio.create_task(add(commit, number)) for number in range(1, 50)]
        await asyncio.sleep(0)
        disk.go.set()
        await asyncio.gather(first, *later)
    assert disk.writes == 2


async def test_a_failed_write_fails_everyone_and_the_next_one_may_succeed(disk: Disk) -> None:
    async with GroupCommit(disk.store, "binance", gather_s=0.02) as commit:
        disk.full = True
        told = await asyncio.gather(
            *(add(commit, number) for number in range(5)), return_exceptions=True
        )
        assert [type(error) for error in told] == [Unavailable] * 5
        assert len({id(error) for error in told}) == 5
        assert all("No space left" in str(error) for error in told)
        assert disk.store.series() == ()
        disk.full = False
        await add(commit, 1)
    assert disk.store.series() == (series(1),)


async def test_a_cancelled_caller_hurts_nobody(disk: Disk) -> None:
    disk.go.clear()
    async with GroupCommit(disk.store, "binance", gather_s=0.02) as commit:
        tasks = [asyncio.create_task(add(commit, number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()  # While it gathers.
        await held_up(disk)
        tasks[1].cancel()  # While it is written.
        disk.go.set()
        told = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in told[:2]] == [asyncio.CancelledError] * 2
        assert told[2:] == [None, None]
        await add(commit, 9)
    assert {series(2), series(3), series(9)} <= set(disk.store.series())


async def test_a_writer_that_is_cancelled_tells_nobody_that_it_wrote(disk: Disk) -> None:
    disk.go.clear()
    commit = GroupCommit(disk.store, "binance", gather_s=0.0)
    await commit.__aenter__()
    first = asyncio.create_task(add(commit, 1))
    await held_up(disk)
    second = asyncio.create_task(add(commit, 2))
    await asyncio.sleep(0)
    assert commit._writer is not None
    commit._writer.cancel()
    disk.go.set()
    told = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(each) for each in told] == [asyncio.CancelledError] * 2
    with pytest.raises(StoreError, match="closed"):
        await add(commit, 3)
    with pytest.raises(asyncio.CancelledError):
        await commit.__aexit__(None, None, None)


async def test_an_answer_that_settles_nothing_needs_no_write(disk: Disk) -> None:
    async with GroupCommit(disk.store, "binance", gather_s=3600) as commit:
        await commit.add(BTC, CandleBatch.empty(), [], fence=1, known_at=1)
    assert disk.writes == 0


async def test_another_exchanges_answer_is_refused(disk: Disk) -> None:
    async with GroupCommit(disk.store, "binance", gather_s=0.0) as commit:
        with pytest.raises(ValueError, match="does not belong"):
            await commit.add(
                Series.of("bybit", "A/B", "1m"), flat(0, 1), span(0, 1), fence=1, known_at=1
            )
        with pytest.raises(ValueError, match="covers"):
            await commit.add(BTC, flat(0, 2), span(0, 1), fence=1, known_at=1)
        await commit.add(BTC, flat(0, 1), span(0, 1), fence=1, known_at=1)
    assert disk.store.rows(BTC, at(0), at(1)).num_rows == 1
