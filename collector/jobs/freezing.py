"""Jobs of a symbol that has left its exchange: stopped with the reason, and started again.

A frozen job is a paused job whose `waiting_for` holds the reason. Unlike an operator's pause, it
ends by itself when the symbol is listed again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from pymongo import ReturnDocument

from collector.jobs.job import Job
from collector.jobs.states import BY_NAME, JobTransition, State, Status
from collector.jobs.wishes import CHANGED
from collector.mongo.client import NOW_MS, Document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bson import ObjectId

    from collector.mongo.client import Database


class Frozen(StrEnum):
    """The reason, as stored in `waiting_for`."""

    DELISTED = "delisted"
    RENAMED = "renamed"


class Freezing:
    """Every statement that freezes or thaws jobs."""

    def __init__(self, database: Database) -> None:
        self._jobs = database.jobs

    async def freeze(
        self,
        exchange_id: str,
        symbol: str,
        reason: Frozen,
        message: str,
        *,
        types: Sequence[str] = (),
    ) -> list[Job]:
        """Stops every job of the symbol that is not done, or those of some types.

        Failed jobs are marked too, so that operators do not look for their fault. Returns all that
        are frozen for this reason now; a running one stops after its current page.
        """
        whose: Document = {"exchange_id": exchange_id, "symbol": symbol}
        if types:
            whose["type"] = {"$in": list(types)}
        marked: Document = {
            "waiting_for": reason.value,
            "stats": {"$mergeObjects": ["$stats", {"last_error": {"$literal": message}}]},
            **CHANGED,
        }
        for transition in (BY_NAME["pause"], BY_NAME["pause_running"]):
            await self._jobs.update_many(
                {**whose, **_required(transition)}, [{"$set": marked | _targets(transition)}]
            )
        failed = {"state": State.FAILED.value, "status": Status.PAUSED.value}
        await self._jobs.update_many(
            {**whose, **failed, "waiting_for": {"$ne": reason.value}}, [{"$set": marked}]
        )
        return await self.frozen(exchange_id, symbol, reason)

    async def frozen(self, exchange_id: str, symbol: str, reason: Frozen) -> list[Job]:
        """The jobs of a symbol that wait for this reason."""
        documents = await self._jobs.find(
            {
                "exchange_id": exchange_id,
                "symbol": symbol,
                "status": Status.PAUSED.value,
                "waiting_for": reason.value,
            },
            sort=[("_id", 1)],
        )
        return [Job.from_document(document) for document in documents]

    async def thaw(self, job_id: ObjectId, *, since_ms: int | None = None) -> Job | None:
        """Lets a frozen job run again, from `since_ms` on where it is given.

        Returns None when it is no longer frozen, or its worker has not released it yet.
        """
        resume = BY_NAME["resume"]
        fields: Document = {
            **_targets(resume),
            "next_run_at": NOW_MS,
            "attempt": 0,
            "kills": 0,
            "waiting_for": None,
            **CHANGED,
        }
        if since_ms is not None:
            fields["cursor"] = {"$mergeObjects": ["$cursor", {"since_ms": since_ms}]}
        reasons = [each.value for each in Frozen]
        document = await self._jobs.find_one_and_update(
            {"_id": job_id, "waiting_for": {"$in": reasons}, **_required(resume)},
            [{"$set": fields}],
            return_document=ReturnDocument.AFTER,
        )
        return Job.from_document(document) if document else None

    async def asked_for(self, exchange_id: str, job_type: str) -> list[str]:
        """The symbols that active jobs of a type request from the exchange."""
        found = await self._jobs.aggregate(
            [
                {
                    "$match": {
                        "exchange_id": exchange_id,
                        "type": job_type,
                        "status": Status.ACTIVE.value,
                    }
                },
                {"$group": {"_id": "$symbol"}},
            ]
        )
        return sorted(each["_id"] for each in found if each["_id"])


def _required(transition: JobTransition) -> Document:
    return {
        "state": {"$in": sorted(transition.states_from)},
        "status": {"$in": sorted(transition.status_from)},
    }


def _targets(transition: JobTransition) -> Document:
    targets: Document = {}
    if transition.state_to is not None:
        targets["state"] = transition.state_to.value
    if transition.status_to is not None:
        targets["status"] = transition.status_to.value
    return targets
