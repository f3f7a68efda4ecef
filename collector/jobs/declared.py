"""Which jobs the settings file has declared: the mark `declared` on their documents.

`declared` holds what the file last said about the job (`since`, `priority`, `params`), so that an
edit of the file can be told from a change by an operator. `left` in it: the file no longer names
the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.jobs.job import Job
from collector.jobs.states import LIVE
from collector.jobs.wishes import CHANGED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bson import ObjectId

    from collector.mongo.client import Database

_LIVE = {"status": {"$in": sorted(LIVE)}}


class DeclaredJobs:
    """Live jobs by their keys, and their marks."""

    def __init__(self, database: Database) -> None:
        self._jobs = database.jobs

    async def of_keys(self, unique_keys: Sequence[str]) -> dict[str, Job]:
        """The live jobs of these keys, declared or not."""
        documents = await self._jobs.find({"unique_key": {"$in": list(unique_keys)}, **_LIVE})
        return {each["unique_key"]: Job.from_document(each) for each in documents}

    async def all(self) -> dict[str, Job]:
        """Every live job that a settings file has declared."""
        documents = await self._jobs.find({"declared": {"$type": "object"}, **_LIVE})
        return {each["unique_key"]: Job.from_document(each) for each in documents}

    async def mark(self, job_id: ObjectId, declared: Mapping[str, Any]) -> None:
        fields = {"declared": {"$literal": dict(declared)}, **CHANGED}
        await self._jobs.update_one({"_id": job_id, **_LIVE}, [{"$set": fields}])


def declared(job: Job) -> Mapping[str, Any] | None:
    """What the file last said about the job; None when no file has named it."""
    return job.document.get("declared")
