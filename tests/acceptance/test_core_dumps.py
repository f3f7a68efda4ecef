"""A crash leaves no secrets behind, unless an operator wants to look into it."""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.api_process import settings_of
from tests.support.processes import program
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.mongo.client import Database

NO_MEMORY = 0
CRASH = """
import os
from collector.operations.processes import forbid_core_dumps

forbid_core_dumps()
os.abort()
"""


@pytest.fixture(autouse=True)
def dumps_are_allowed() -> Iterator[int]:
    """As far as this process may allow them to its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def dumped(pid: int) -> tuple[int, int]:
    """The largest dump that a process may leave, and which parts of its memory are in it."""
    limit, _ = resource.prlimit(pid, resource.RLIMIT_CORE)
    return limit, int(Path(f"/proc/{pid}/coredump_filter").read_text(), 16)


@pytest.mark.parametrize(
    ("module", "event"), [(("workers",), "worker_started"), (("api", "--port", "0"), "api_started")]
)
async def test_a_program_leaves_its_memory_only_where_that_is_wanted(
    database: Database,
    mongo_uri: str,
    tmp_path: Path,
    dumps_are_allowed: int,
    module: tuple[str, ...],
    event: str,
) -> None:
    settings = settings_of(database, mongo_uri, tmp_path)
    async with program(*module, **settings) as guarded:
        await until(lambda: guarded.lines(event), event)
        assert dumped(guarded.pid) == (0, NO_MEMORY)
    async with program(*module, **settings, COLLECTOR_CORE_DUMPS="true") as examined:
        await until(lambda: examined.lines(event), event)
        limit, parts = dumped(examined.pid)
        assert limit == dumps_are_allowed
        assert parts != NO_MEMORY


async def test_a_crash_leaves_no_file(tmp_path: Path) -> None:
    crashed = await asyncio.create_subprocess_exec(sys.executable, "-c", CRASH, cwd=tmp_path)
    assert await crashed.wait() < 0
    assert [*tmp_path.iterdir()] == []
