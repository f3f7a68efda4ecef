"""What workers do to jobs, every write behind its fence. lease.py explains the protocol."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument

from collector import logs, metrics
from collector.clock import Clock, SystemClock
from collector.errors import JobStopped, LeaseLost
from collector.jobs import types
from collector.jobs.job import Job
from collector.jobs.lease import Lease
from collector.jobs.lease_statements import (
    LEASE_INDEX,
    NEXT_DUE_INDEX,
    RUNNING_INDEX,
    SET_ASIDE,
    URGENCY,
    Claim,
    due_filter,
    held,
    literal,
)
from collector.jobs.settling import Settling
from collector.jobs.states import State, Status
from collector.lease_terms import LeaseTerms
from collector.mongo.client import NOW_MS, WAKE, Document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bson import ObjectId

    from collector.jobs.cursor import CursorShape
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
        return await self.take(exchange_id, await self.due(exchange_id, wanted))

    async def due(self, exchange_id: str, wanted: int) -> list[ObjectId]:
        """Up to `wanted` jobs that are due now, most urgent first."""
        found = await self._jobs.find(
            due_filter(exchange_id),
            projection={"_id": 1},
            sort=URGENCY,
            hint=LEASE_INDEX,
            limit=wanted,
        )
        return [document["_id"] for document in found]

    async def take(self, exchange_id: str, job_ids: Sequence[ObjectId]) -> list[Lease]:
        """The jobs of these that are still due, in their order."""
        if not job_ids:
            return []
        among = {"_id": {"$in": list(job_ids)}}
        claim, asked_at = await self._claim_now()
        await self._jobs.update_many({**among, **due_filter(exchange_id)}, claim.update)
        taken = await self._jobs.find({**among, "lock.lease_token": claim.token})
        by_id = {document["_id"]: document for document in taken}
        if len(by_id) < len(job_ids):
            aside = {**among, "stats.last_error": SET_ASIDE, "lock.lease_token": None}
            for document in await self._jobs.find(aside):
                _note_set_aside(document)
        return [
            self._lease(by_id[job_id], claim.token, asked_at)
            for job_id in job_ids
            if job_id in by_id
        ]

    async def _claim_one(self, exchange_id: str) -> list[Lease]:
        claim, asked_at = await self._claim_now()
        document = await self._jobs.find_one_and_update(
            due_filter(exchange_id),
            claim.update,
            sort=URGENCY,
            hint=LEASE_INDEX,
            return_document=ReturnDocument.AFTER,
        )
        if document is None:
            return []
        if document["state"] != State.RUNNING:
            # It was failed instead of leased; there may be another due job behind it.
            _note_set_aside(document)
            return await self._claim_one(exchange_id)
        return [self._lease(document, claim.token, asked_at)]

    async def _claim_now(self) -> tuple[Claim, float]:
        """A claim about to be sent, and the moment on our own clock."""
        ttl_s = self.terms.ttl_ms / 1000
        claim = Claim(
            self.worker_id,
            uuid.uuid4().hex,
            self.terms.ttl_ms,
            asked_ms=await self._database.now_ms(),
            troubled=self._database.stalled(2 * ttl_s, self.terms.renew_every),
        )
        return claim, self._clock.monotonic()

    def _lease(self, document: Mapping[str, Any], token: str, asked_at: float) -> Lease:
        job = Job.from_document(document)
        # The claim stored the server's time: the most recent reading of its clock.
        self._database.server_clock.anchor_ms(job.document["stats"]["last_run_at"], asked_at)
        return Lease(
            job=job,
            fence=job.fence,
            lease_token=token,
            worker_id=self.worker_id,
            trusted_until=asked_at + self.terms.trust_seconds,
            kills=document.get("kills", 0),
        )

    async def mark_alone(self, lease: Lease) -> None:
        """Records that the job has its worker to itself. Raises LeaseLost."""
        result = await self._jobs.update_one(held(lease), {"$set": {"lock.alone": True}})
        if not result.matched_count:
            raise LeaseLost(f"job {lease.job_id}: fence {lease.fence} is no longer valid")

    async def live_leases(self, exchange_id: str) -> int:
        """How many jobs of the exchange are held now. Counted, so that a crash leaks nothing.

        Those that run on are left out: they would take their place for ever.
        """
        return await self._jobs.count_documents(
            {
                "exchange_id": exchange_id,
                "state": State.RUNNING.value,
                "type": {"$nin": list(types.running_on())},
                "$expr": {"$gt": ["$lock.lock_until", NOW_MS]},
            },
            hint=RUNNING_INDEX,
        )

    async def running(self) -> int:
        """How many jobs are leased now, over all exchanges."""
        return await self._jobs.count_documents({"state": State.RUNNING.value}, hint=RUNNING_INDEX)

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

    async def bring_forward(self, by_ms: int) -> None:
        """The server's clock was set back: moves waiting jobs earlier by as much, but not before
        now.

        More than one worker may do it. A job that runs too early finds nothing to do.
        """
        sooner = {"$max": [NOW_MS, {"$subtract": ["$next_run_at", by_ms]}]}
        await self._jobs.update_many(
            {
                "status": Status.ACTIVE.value,
                "state": {"$ne": State.RUNNING.value},
                "$expr": {"$gt": ["$next_run_at", NOW_MS]},
            },
            [{"$set": {"next_run_at": sooner, "wake": WAKE}}],
        )

    async def stopped(self, job_ids: Iterable[ObjectId]) -> list[ObjectId]:
        """The jobs of these that an operator has paused or deleted."""
        found = await self._jobs.find(
            {"_id": {"$in": list(job_ids)}, "status": {"$ne": Status.ACTIVE.value}},
            projection={"_id": 1},
        )
        return [document["_id"] for document in found]

    async def pending(self, exchange_ids: Sequence[str]) -> bool:
        """Whether a job of these exchanges has something to do before its scheduled time."""
        unfinished = [State.QUEUED.value, State.RUNNING.value, State.WAITING.value]
        found = await self._jobs.find_one(
            {
                "status": Status.ACTIVE.value,
                "exchange_id": {"$in": list(exchange_ids)},
                "type": {"$nin": list(types.running_on())},
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
        self, lease: Lease, cursor: CursorShape, progress: Mapping[str, Any] | None = None
    ) -> None:
        """Moves the cursor. Call it only when everything before it is durable.

        Raises LeaseLost when another worker has the job, and JobStopped when it was paused or
        deleted (the cursor has moved all the same, because the page is stored).
        """
        # Progress resets the count of failures.
        fields: Document = {
            "cursor": cursor.to_document(),
            "attempt": 0,
            "kills": 0,
            "kills_alone": 0,
            "refused": None,
        }
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
        """Ends the lease and writes the outcome. Safe to repeat when the answer was lost."""
        await self._settling.settle(lease, settlement)

    async def forgotten(self, known: Iterable[ObjectId]) -> list[Lease]:
        """Jobs leased to us without our knowledge: claims whose answers were lost."""
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
