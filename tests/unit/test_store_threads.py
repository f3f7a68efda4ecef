"""Writers, compactions and readers at the same time, on a real disk and a real object store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from collector.store.coverage import Covered
from collector.store.page import Page
from collector.store.port import Swapped
from tests.support.bars import BTC, ETH, at, flat, span

if TYPE_CHECKING:
    from tests.support.lakes import Lake

PAGES = 30


def test_readers_see_everything_that_was_durable_before_they_looked(lake: Lake) -> None:
    durable = 0

    def write() -> None:
        nonlocal durable
        store = lake.store()
        for slot in range(PAGES):
            if slot % 2:
                store.append_page(BTC, flat(slot, 1), span(slot, slot + 1), fence=1, known_at=slot)
            else:
                each = [
                    Page.of(series, flat(slot, 1), span(slot, slot + 1), fence=1, known_at=slot)
                    for series in (BTC, ETH)
                ]
                store.append_group(each)
            durable = slot + 1

    def merge() -> int:
        store, conflicts = lake.store(), 0
        while durable < PAGES:
            try:
                store.compact(BTC)
                store.compact(ETH)
            except Swapped:
                conflicts += 1
            store.sweep("binance")
        return conflicts

    def read() -> int:
        store, looks = lake.store(), 0
        while durable < PAGES:
            known = durable
            rows = store.rows(BTC, at(0), at(PAGES))
            ts = rows["ts"].to_pylist()
            assert ts == [at(slot) for slot in range(len(ts))]
            assert len(ts) >= known
            # Pages and groups are listed one after the other: what came in between may show a
            # later slot before an earlier one.
            assert not any(rows["is_gap"].to_pylist()[:known])
            looks += 1
        return looks

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(job) for job in (write, merge, merge, read)]
        for job in jobs:
            job.result()
    last = lake.store()
    for series in (BTC, ETH):
        last.compact(series)
    last.sweep("binance")
    assert last.storage.names("binance/parts") == []
    assert last.coverage(BTC) == (Covered(at(0), at(PAGES), PAGES),)
