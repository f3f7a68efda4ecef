"""One process of a crowd on one lake: it appends to a series, or merges it, until it is killed.

An appender says every slot on a line of its own when the slot is durable. A merger says `merged`
after every compaction that had something to do. Both dawdle before they put anything in place, so
that others get in between.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from collector import logs
from collector.store.page import Page
from collector.store.port import StorageFault, Swapped
from collector.store.root import storage_at
from collector.store.store import Store
from tests.support.bars import BTC, ETH, bars, span


def append(store: Store, first: int, step: int, end: int) -> None:
    """Every second slot as a page, every other one in a group."""
    for slot in range(first, end, step):
        batch, covered = bars({slot: float(slot + 1)}), span(slot, slot + 1)
        if (slot // step) % 2:
            store.append_page(BTC, batch, covered, fence=1, known_at=slot + 1)
        else:
            store.append_group(
                [Page.of(each, batch, covered, fence=1, known_at=slot + 1) for each in (BTC, ETH)]
            )
        print(slot, flush=True)


def dawdle(point: StorageFault, _path: str) -> None:
    if point is StorageFault.BEFORE_RENAME:
        time.sleep(random.random() / 10)


def merge(store: Store) -> None:
    while True:
        for series in (BTC, ETH):
            try:
                done = store.compact(series)
            except Swapped:
                continue
            if done is not None:
                print("merged", flush=True)
        store.sweep("binance")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--slots", type=int, nargs=3, metavar=("FIRST", "STEP", "END"))
    arguments = parser.parse_args()
    logs.configure("CRITICAL", "json")
    lake = Store(storage_at(arguments.root, dawdle))
    if arguments.slots:
        append(lake, *arguments.slots)
    else:
        merge(lake)
    sys.exit(0)
