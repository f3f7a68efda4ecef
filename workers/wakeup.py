"""Knowing that there is work: a change stream, a timer for the next due job, polling as fallback.

One change stream a process: watchers cost the database on every write. It reports only documents
that were inserted or whose `wake` was touched, so token grants and renewals never reach it.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from pymongo.errors import PyMongoError

from collector import logs
from collector.backoff import Backoff
from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bson import ObjectId

    from collector.mongo.client import Database

_log = logs.get("workers")
_REOPEN = Backoff(base_seconds=0.2, max_seconds=5.0)
_NOTICED: list[dict[str, Any]] = [
    {
        "$match": {
            "ns.coll": {"$in": ["jobs", "connectors"]},
            "$or": [
                {"operationType": "insert"},
                {"updateDescription.updatedFields.wake": {"$exists": True}},
            ],
        }
    },
    {"$project": {"ns.coll": 1, "documentKey": 1}},
]


class Wakeup:
    """Something to wait on until there may be work."""

    def __init__(
        self,
        database: Database,
        *,
        poll_seconds: float,
        job_changed: Callable[[ObjectId], None] = lambda _: None,
    ) -> None:
        """`job_changed` is called for every job that was created or changed."""
        self._database = database
        self._poll_seconds = poll_seconds
        self._job_changed = job_changed
        self._rung = asyncio.Event()
        self.connectors_changed = True

    def ring(self) -> None:
        """There may be work now."""
        self._rung.set()

    async def wait(self, due_in: float | None) -> None:
        """Waits until it is woken, the next job is due, or it is time to look anyway."""
        # Jittered, so that a fleet does not poll in step.
        longest = self._poll_seconds * (0.5 + random.random())
        seconds = longest if due_in is None else max(0.0, min(longest, due_in))
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return
        finally:
            self._rung.clear()

    def _notice(self, change: Mapping[str, Any] | None) -> None:
        if change is None:
            return  # The server had nothing to report for a while.
        if change["ns"]["coll"] == "connectors":
            self.connectors_changed = True
        else:
            self._job_changed(change["documentKey"]["_id"])
        self.ring()

    async def keep_watching(self) -> None:
        """Until cancelled. While the stream is down, polling alone finds the work."""
        failures = 0
        while True:
            try:
                async with self._database.changes(_NOTICED) as following:
                    failures = 0
                    self.connectors_changed = True
                    self.ring()
                    while True:
                        self._notice(await following())
            except Exception as error:  # noqa: BLE001 - a worker without a stream still polls
                if failures == 0 and not isinstance(error, PyMongoError | DatabaseUnavailable):
                    _log.warning("duty_failed", duty="watching", error=str(error)[:300])
                failures += 1
                await asyncio.sleep(_REOPEN.delay(failures, random.random()))
