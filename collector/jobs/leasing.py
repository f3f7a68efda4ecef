"""What workers do to jobs, every write behind its fence. The protocol is told in lease.py."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument

from collector import logs, metrics
from collector.clock import Clock, SystemClock
from collector.errors import JobStopped, LeaseLost
from collector.jobs.job import Cursor, Job
from collector.jobs.lease import Lease, LeaseTerms
from collector.jobs.lease_statements import (
    LEASE_INDEX,
    NEXT_DUE_INDEX,
    RUNNING_INDEX,
    SET_ASIDE,
    URGENCY,
    claim_update,
    due_filter,
    held,
    literal,
)
from collector.jobs.settling import Settling
from collector.jobs.states import State, Status
from collector.mongo.client import NOW_MS, Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bson import ObjectId

    from collector.jobs.settlement import Settlement
    from collector.mongo.client import Database

_log = logs.get("collector.jobs")


class Leasing:
    """Claim, renew, commit and settle, for one worker."""

    def __init__(
        self,
        database: Database,
        worker_id: str,
        *,
        terms: LeaseTerms | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.worker_id = worker_id
        self.terms = terms or LeaseTerms()
        self._database = database
        self._jobs = database.jobs
        self._clock = clock or SystemClock()
        self._settling = Settling(database.jobs)

    # -- claiming -----------------------------------------------------------------------------

    async def claim(self, exchange_id: str, wanted: int = 1) -> list[Lease]:
        """Up to `wanted` due jobs of one exchange, most urgent first. Take only what can start.

        One job is one statement. Several are found first and then taken by one statement that
        still requires each to be due, so a job lost to another worker is simply not among ours.
        """
        if wanted == 1:
            return await self._claim_one(exchange_id)
        token, asked_at = uuid.uuid4().hex, self._clock.monotonic()
        found = await self._jobs.find(
            due_filter(exchange_id),
            projection={"_id": 1},
            sort=URGENCY,
            hint=LEASE_INDEX,
            limit=wanted,
        )
        if not found:
            return []
        ids = [document["_id"] for document in found]
        still_due = {"_id": {"$in": ids}, **due_filter(exchange_id)}
        await self._jobs.update_many(
            still_due, claim_update(self.worker_id, token, self.terms.ttl_ms)
        )
        taken = await self._jobs.find({"_id": {"$in": ids}, "lock.lease_token": token})
        by_id = {document["_id"]: document for document in taken}
        ordered = [by_id[job_id] for job_id in ids if job_id in by_id]
        if len(ordered) < len(ids):
            aside = {"_id": {"$in": ids}, "stats.last_error": SET_ASIDE}
            for document in await self._jobs.find({**aside, "lock.lease_token": None}):
                _note_set_aside(document)
        return [self._lease(document, token, asked_at) for document in ordered]

    async def _claim_one(self, exchange_id: str) -> list[Lease]:
        token, asked_at = uuid.uuid4().hex, self._clock.monotonic()
        document = await self._jobs.find_one_and_update(
            due_filter(exchange_id),
            claim_update(self.worker_id, token, self.terms.ttl_ms),
            sort=URGENCY,
            hint=LEASE_INDEX,
            return_document=ReturnDocument.AFTER,
        )
        if document is None:
            return []
        if document["state"] != State.RUNNING:
            # It was set aside instead of handed out; there may be another due job behind it.
            _note_set_aside(document)
            return await self._claim_one(exchange_id)
        return [self._lease(document, token, asked_at)]

    def _lease(self, document: Mapping[str, Any], token: str, asked_at: float) -> Lease:
        job = Job.from_document(document)
        return Lease(
            job=job,
            fence=job.fence,
            lease_token=token,
            worker_id=self.worker_id,
            trusted_until=asked_at + self.terms.trust_seconds,
            rescued=document.get("kills", 0) > 0,
        )

    async def live_leases(self, exchange_id: str) -> int:
        """How many jobs of the exchange are held now. Counted, so that a crash leaks nothing."""
        return await self._jobs.count_documents(
            {
                "exchange_id": exchange_id,
                "state": State.RUNNING.value,
                "$expr": {"$gt": ["$lock.lock_until", NOW_MS]},
            },
            hint=RUNNING_INDEX,
        )

    async def next_due_ms(self, exchange_ids: Sequence[str], after_ms: int) -> int | None:
        """When the next job of these exchanges becomes due, on the server's clock.

        `after_ms` is when the caller last looked for due jobs; what became due since counts.
        """
        found = await self._jobs.find(
            {
                "status": Status.ACTIVE.value,
                "exchange_id": {"$in": list(exchange_ids)},
                "next_run_at": {"$gt": after_ms},
            },
            projection={"next_run_at": 1},
            sort=[("next_run_at", 1)],
            hint=NEXT_DUE_INDEX,
            limit=1,
        )
        return found[0]["next_run_at"] if found else None

    async def pending(self, exchange_ids: Sequence[str]) -> bool:
        """Whether a job of these exchanges has something to do before its scheduled time."""
        unfinished = [State.QUEUED.value, State.RUNNING.value, State.WAITING.value]
        found = await self._jobs.find_one(
            {
                "status": Status.ACTIVE.value,
                "exchange_id": {"$in": list(exchange_ids)},
                "$or": [{"state": {"$in": unfinished}}, {"waiting_for": "retry"}],
            },
            projection={"_id": 1},
        )
        return found is not None

    # -- holding ------------------------------------------------------------------------------

    async def renew(self, leases: Sequence[Lease]) -> tuple[dict[ObjectId, Lease], list[Lease]]:
        """Extends all of them in one statement: those still ours by job id, and those lost."""
        if not leases:
            return {}, []
        asked_at = self._clock.monotonic()
        until = {"$add": [NOW_MS, self.terms.ttl_ms]}
        ours = {"$or": [held(lease) for lease in leases]}
        result = await self._jobs.update_many(
            ours, [{"$set": {"lock.lock_until": until, "next_run_at": until}}]
        )
        kept: Iterable[Lease] = leases
        if result.matched_count < len(leases):
            found = await self._jobs.find(ours, projection={"fence": 1})
            fences = {document["_id"]: document["fence"] for document in found}
            kept = [lease for lease in leases if fences.get(lease.job_id) == lease.fence]
        trusted_until = asked_at + self.terms.trust_seconds
        renewed = {lease.job_id: replace(lease, trusted_until=trusted_until) for lease in kept}
        return renewed, [lease for lease in leases if lease.job_id not in renewed]

    async def commit(
        self, lease: Lease, cursor: Cursor, progress: Mapping[str, Any] | None = None
    ) -> None:
        """Moves the cursor. Call it only when everything before it is durable.

        Raises LeaseLost when the job is someone else's, JobStopped when it was paused or deleted
        (the cursor has moved all the same: the page was written).
        """
        fields: Document = {"cursor": cursor.to_document()}
        if progress is not None:
            fields["progress"] = dict(progress)
        document = await self._jobs.find_one_and_update(
            held(lease),
            [{"$set": {**literal(fields), "updated_at": "$$NOW"}}],
            projection={"status": 1},
            return_document=ReturnDocument.AFTER,
        )
        if document is None:
            raise LeaseLost(f"job {lease.job_id}: fence {lease.fence} is no longer valid")
        if document["status"] != Status.ACTIVE:
            raise JobStopped(f"job {lease.job_id} was {document['status']}")

    async def settle(self, lease: Lease, settlement: Settlement) -> None:
        """Ends the lease and writes what came of it. Safe to repeat when the answer was lost."""
        await self._settling.settle(lease, settlement)

    async def forgotten(self, known: Iterable[ObjectId]) -> list[Lease]:
        """Jobs that carry our name without our knowing: claims whose answer was lost."""
        documents = await self._jobs.find(
            {
                "state": State.RUNNING.value,
                "lock.locked_by": self.worker_id,
                "_id": {"$nin": list(known)},
            },
            hint=RUNNING_INDEX,
        )
        now = self._clock.monotonic()
        return [
            self._lease(document, document["lock"]["lease_token"], now) for document in documents
        ]


def _note_set_aside(document: Document) -> None:
    metrics.JOBS_SET_ASIDE.inc()
    _log.warning(
        "job_set_aside",
        job=str(document["_id"]),
        exchange=document["exchange_id"],
        symbol=document.get("symbol"),
        why=SET_ASIDE,
    )
