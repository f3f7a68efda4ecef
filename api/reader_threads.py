"""The threads that read whole files for reports.

Few of them: any number of concurrent reports neither blocks the event loop nor keeps other requests
from the disk.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from api.problems import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_READERS = ThreadPoolExecutor(2, thread_name_prefix="reports")
MOST_AT_ONCE = 8
"""Reads that may be under way or wait for a thread; the next one is put off."""
WAIT_SECONDS = 5
_under_way = 0


async def in_reader(function: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Runs it in one of the threads. A Refusal with 503 when too many wait for one."""
    global _under_way
    if _under_way >= MOST_AT_ONCE:
        raise busy(MOST_AT_ONCE)
    work = partial(function, *arguments, **named)
    _under_way += 1
    try:
        return await asyncio.get_running_loop().run_in_executor(_READERS, work)
    finally:
        _under_way -= 1


def busy(under_way: int) -> Refusal:
    """For whoever comes too many."""
    return Refusal(
        503,
        "reports_busy",
        f"{under_way} reports are being made already",
        headers={"Retry-After": str(WAIT_SECONDS)},
    )
