"""Two bad answers in a hundred: a backfill asks again, and stays one run."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from collector.connectors.connector import Limits
from collector.simulated.faults.answers import BadAnswer
from tests.acceptance.job_diary import JobDiary
from tests.acceptance.live_jobs import WITHIN_SECONDS
from tests.support.fleet import PAGES_OF_100, fleet

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

DAYS = 38


async def test_two_percent_of_bad_answers_leave_a_backfill_one_run(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    limits = Limits(60, 1_000)
    async with fleet(database, mongo_uri, tmp_path, limits=limits, **PAGES_OF_100) as f:
        diary = await JobDiary.begin(database)
        f.exchange.faults.add(BadAnswer(endpoint="klines", probability=0.02))
        job = await f.backfill(days=DAYS)
        async with f.worker() as worker:
            done = await f.finished(job, WITHIN_SECONDS)
            worker.signal(signal.SIGTERM)  # which writes the last of the history of runs
            assert await worker.ended() == 0
        # Without the two questions about the first bar, one of which is for longer bars.
        pages = [e for e in f.klines() if e.limit != 1 and e.interval == "1m"]
        struck = [entry for entry in pages if "bad_answer" in entry.faults]
        assert len(struck) >= 5, "hardly a bad answer"
        runs = await database.job_runs.find({"job_id": job.id})
        # A machine that stands still may make a run wait for its token, and no answer does.
        assert [run["outcome"] for run in runs if run["outcome"] != "wait"] == ["done"]
        assert max(await diary.values("attempt")) <= 1
        assert sum(run["pages"] for run in runs) == len({entry.start_ms for entry in pages})
        await diary.check()
        f.check(done)
