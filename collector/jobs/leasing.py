"""What workers do to jobs, every write behind its fence. lease.py explains the protocol."""

from __future__ import annotations

import uuid
from collections import Counter
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
    AGE,
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
from collector.jobs.listing import BY_EXCHANGE_STATE
from collector.jobs.settling import Settling
from collector.jobs.states import WAITING_TO_RUN, State, Status
from collector.lease_terms import LeaseTerms
from collector.mongo.client import NOW_MS, Document
from collector.priority import OLDEST_EVERY, in_order, is_for_the_oldest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

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
        types: Collection[str] | None = None,
    ) -> None:
        """`types` are those that this worker can run; None stands for any.

        A job of another type is left to a worker of a newer version.
        """
        self.worker_id = worker_id
        self._types = types
        self._turns: Counter[str] = Counter()
        self.terms = terms or LeaseTerms()
        self._database = database
        self._jobs = database.jobs
        self._clock = clock or SystemClock()
        self._settling = Settling(database.jobs)

    # -- claiming -----------------------------------------------------------------------------

    async def claim(self, exchange_id: str, wanted: int = 1) -> list[Lease]:
        """Up to `wanted` due jobs of one exchange, in the order of collector/priority.py. Take only
        what can start.

        One job is one statement. Several are found first and then taken by one statement that
        still requires each to be due, so a job lost to another worker is simply not among ours.
        """
        if wanted == 1:
            return await self._claim_one(exchange_id)
        return await self.take(exchange_id, await self.due(exchange_id, wanted))

    async def due(self, exchange_id: str, wanted: int) -> list[ObjectId]:
        """Up to `wanted` jobs that are due now, in their order."""
        urgent = await self._find_due(exchange_id, wanted, URGENCY, LEASE_INDEX)
        if len(urgent) < wanted:
            return urgent  # All that is due: nobody is left behind.
        old = await self._find_due(exchange_id, 1 + wanted // OLDEST_EVERY, AGE, NEXT_DUE_INDEX)
        return in_order(urgent, old, self._turns[exchange_id])

    async def _find_due(
        self, exchange_id: str, limit: int, sort: list[tuple[str, int]], index: str
    ) -> list[ObjectId]:
        found = await self._jobs.find(
            due_filter(exchange_id, self._types),
            projection={"_id": 1},
            sort=sort,
            hint=index,
            limit=limit,
        )
        return [document["_id"] for document in found]

    async def due_offline(self, exchange_id: str) -> list[ObjectId]:
        """Due jobs that ask the exchange nothing, for when its budget is spent."""
        offline = [name for name in types.offline() if self._types is None or name in self._types]
        unfinished = {"state": {"$in": [*sorted(WAITING_TO_RUN), State.RUNNING.value]}}
        found = await self._jobs.find(
            {**due_filter(exchange_id, offline), **unfinished},
            projection={"_id": 1},
            hint=BY_EXCHANGE_STATE.name,
        )
        return [document["_id"] for document in found]

    async def due_priorities(self, exchange_id: str, limit: int) -> list[int]:
        """The priorities of the most urgent jobs that are due now."""
        found = await self._jobs.find(
            due_filter(exchange_id, self._types),
            projection={"_id": 0, "priority": 1},
            sort=URGENCY,
            hint=LEASE_INDEX,
            limit=limit,
        )
        return [document["priority"] for document in found]

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
        claimed = [by_id[job_id] for job_id in job_ids if job_id in by_id]
        self._turns[exchange_id] += len(claimed)
        return [self._claimed(document, claim.token, asked_at) for document in claimed]

    async def _claim_one(self, exchange_id: str) -> list[Lease]:
        claim, asked_at = await self._claim_now()
        oldest = is_for_the_oldest(self._turns[exchange_id])
        document = await self._jobs.find_one_and_update(
            due_filter(exchange_id, self._types),
            claim.update,
            sort=AGE if oldest else URGENCY,
            hint=NEXT_DUE_INDEX if oldest else LEASE_INDEX,
            return_document=ReturnDocument.AFTER,
        )
        if document is None:
            return []
        if document["state"] != State.RUNNING:
            # It was failed instead of leased; there may be another due job behind it.
            _note_set_aside(document)
            return await self._claim_one(exchange_id)
        self._turns[exchange_id] += 1
        return [self._claimed(document, claim.token, asked_at)]

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

    def _claimed(self, document: Mapping[str, Any], token: str, asked_at: float) -> Lease:
        """The lease that this claim has taken."""
        # The claim stored the server's time: the most recent reading of its clock.
        self._database.server_clock.anchor_ms(document["stats"]["last_run_at"], asked_at)
        return self._lease(document, token, asked_at)

    def _lease(self, document: Mapping[str, Any], token: str, asked_at: float) -> Lease:
        job = Job.from_document(document)
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

    async def live_leases(self, exchange_id: str, limit: int) -> list[ObjectId]:
        """The jobs of the exchange that are held now, in the order in which they were claimed.

        Of those that were claimed together the most urgent come first. Counted and not kept as a
        number, so that a crash leaks nothing. Jobs that run on are left out: they would take their
        place for ever.
        """
        found = await self._jobs.find(
            {
                "exchange_id": exchange_id,
                "state": State.RUNNING.value,
                "type": {"$nin": list(types.running_on())},
                "$expr": {"$gt": ["$lock.lock_until", NOW_MS]},
            },
            projection={"_id": 1},
            sort=[("stats.last_run_at", 1), ("priority", 1), ("_id", 1)],
            hint=RUNNING_INDEX,
            limit=limit,
        )
        return [document["_id"] for document in found]

    async def running(self) -> int:
        """How many jobs are leased now, over all exchanges."""
        return await self._jobs.count_documents({"state": State.RUNNING.value}, hint=RUNNING_INDEX)

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
        known = {} if self._types is None else {"$in": sorted(self._types)}
        found = await self._jobs.find_one(
            {
                "status": Status.ACTIVE.value,
                "exchange_id": {"$in": list(exchange_ids)},
                "type": {"$nin": list(types.running_on()), **known},
                "$or": [{"state": {"$in": unfinished}}, {"waiting_for": "retry"}],
            },
            projection={"_id": 1},
        )
        return found is not None

    # -- holding ------------------------------------------------------------------------------

    async def renew(self, leases: Sequence[Lease]) -> tuple[list[Lease], list[Lease]]:
        """Extends all of them in one statement: those that are still ours, and those lost."""
        if not leases:
            return [], []
        asked_at = self._clock.monotonic()
        until = {"$add": [NOW_MS, self.terms.ttl_ms]}
        ours = {"$or": [held(lease) for lease in leases]}
        result = await self._jobs.update_many(
            ours, [{"$set": {"lock.lock_until": until, "next_run_at": until}}]
        )
        kept, lost = list(leases), list[Lease]()
        if result.matched_count < len(leases):
            found = await self._jobs.find(ours, projection={"fence": 1})
            fences = {document["_id"]: document["fence"] for document in found}
            kept = [lease for lease in leases if fences.get(lease.job_id) == lease.fence]
            lost = [lease for lease in leases if fences.get(lease.job_id) != lease.fence]
        trusted_until = asked_at + self.terms.trust_seconds
        return [replace(lease, trusted_until=trusted_until) for lease in kept], lost

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
