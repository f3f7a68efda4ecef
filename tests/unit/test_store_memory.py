"""What the store has read and closed is freed at once, not when the garbage collector comes by.

A worker lets it come by seldom, and a long compaction opens thousands of files.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from collector.store.store import Store
from tests.support.bars import BTC, flat, span

if TYPE_CHECKING:
    from pathlib import Path


def test_no_footer_is_left_to_the_garbage_collector(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for hour in range(3):
        store.append_page(
            BTC, flat(60 * hour, 60), span(60 * hour, 60 * hour + 60), fence=1, known_at=hour
        )
    gc.collect()
    gc.disable()
    try:
        store.compact(BTC)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        assert not [each for each in gc.garbage if isinstance(each, pq.FileMetaData)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
