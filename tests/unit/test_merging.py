"""Merges of whole histories: one at a time, and in the context of their job."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING

import pytest

from collector.store.port import Corrupt
from tests.support.bars import BTC
from tests.support.until import until
from workers.handlers.merging import merged

if TYPE_CHECKING:
    from collector.market.series import Series

job: contextvars.ContextVar[str] = contextvars.ContextVar("job")


class Merges:
    """A merge that takes until it may end."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.begun: list[str] = []
        self._lock = threading.Lock()
        self._running = self.most = 0

    def __call__(self, series: Series) -> None:
        with self._lock:
            self.begun.append(job.get())
            self._running += 1
            self.most = max(self.most, self._running)
        self.may_end.wait(60)
        with self._lock:
            self._running -= 1


async def test_one_merge_at_a_time_whatever_ends_together() -> None:
    merges = Merges()

    async def run(name: str) -> None:
        job.set(name)
        await merged(merges, BTC)

    runs = [asyncio.create_task(run(name)) for name in "abcde"]
    await until(lambda: len(merges.begun) == 1)
    # Other work in threads does not wait for them.
    await asyncio.to_thread(merges.may_end.set)
    await asyncio.gather(*runs)
    assert sorted(merges.begun) == list("abcde"), "each in the context of its own job"
    assert merges.most == 1


async def test_what_a_merge_raises_is_raised() -> None:
    def damaged(series: Series) -> None:
        raise Corrupt("1m.parquet", "damaged")

    with pytest.raises(Corrupt):
        await merged(damaged, BTC)
