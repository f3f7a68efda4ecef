"""Reports that read whole files are bounded in number."""

from __future__ import annotations

import asyncio
import threading

import pytest

from api.problems import Refusal
from api.reader_threads import MOST_AT_ONCE, in_reader


async def test_one_report_too_many_is_put_off_and_others_are_made() -> None:
    go = threading.Event()
    waiting = [asyncio.create_task(in_reader(go.wait, 30)) for _ in range(MOST_AT_ONCE)]
    await asyncio.sleep(0)
    with pytest.raises(Refusal) as refused:
        await in_reader(go.wait, 30)
    assert (refused.value.status_code, refused.value.code) == (503, "reports_busy")
    go.set()
    assert all(await asyncio.gather(*waiting))
    assert await in_reader(lambda: "made") == "made"
