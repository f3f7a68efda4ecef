"""Merges the parts of a series, within bounded memory.

A backfill ends with a merge of its whole history, and those of an exchange often end together. So
one is merged at a time, with a thread of its own for its compression, and what a long history took
is given back.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.market.series import Series
    from collector.store.compaction import Compacted

_ONE_AT_A_TIME = ThreadPoolExecutor(1, "merge")
_LONG = 100_000
"""Rows. After fewer of them there is not enough to give back."""


async def merged(
    merge: Callable[[Series], Compacted | None], series: Series, *, fetched: int = 0
) -> None:
    """`merge` is a method of the store; it runs in a thread. So many bars were `fetched` for it."""
    work = partial(contextvars.copy_context().run, _merged, merge, series, fetched)
    await asyncio.get_running_loop().run_in_executor(_ONE_AT_A_TIME, work)


def _merged(merge: Callable[[Series], Compacted | None], series: Series, fetched: int) -> None:
    if fetched >= _LONG:
        _give_back()
    done = merge(series)
    if done is not None and done.rows >= _LONG:
        _give_back()


def _give_back() -> None:
    """Returns free memory to the system that lies between blocks in use.

    glibc keeps it: 110 MB after a year of five series that were fetched side by side. Other C
    libraries have no such function, and no such habit.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
