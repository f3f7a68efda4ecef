"""A month of history, collected: the bars of the exchange, and the bytes they have always been."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from collector.jobs.states import State
from collector.store.sealed import Sealed
from tests.support.local_collector import DAY, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

JANUARY = 1_704_067_200_000
FEBRUARY = JANUARY + 31 * DAY
DATA_HASH = "c0482cbc3159a97dbb372affa84839f2e2a0df0e43062a83a3271aab5549b132"
"""Recorded when pages were still handed on as rows."""


async def test_a_month_is_what_the_exchange_has_and_its_hash_stays_the_same(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, listed_ms=JANUARY) as c:
        job = await c.backfill(FEBRUARY)
        await c.until(job, lambda found: found.state is State.SUCCESS, seconds=120)
        assert c.stored(JANUARY, FEBRUARY) == c.truth(JANUARY, FEBRUARY)
        with closing(Sealed.of(c.store.storage, c.series)) as sealed:
            assert sealed.footer.data_hash == DATA_HASH
