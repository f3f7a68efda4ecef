"""The lease: the right to write one job's outcome until it expires.

Why it is built this way
------------------------
A worker can die, hang, be stopped for an hour and go on as if nothing had happened, or lose the
network while its process is fine. Nobody can tell these apart from outside, so the protocol never
tries. It rests on three promises, each kept by a different party.

**The lease (kept by MongoDB).** Taking a due job is one `findOneAndUpdate` on the server's clock.
It sets `lock.lock_until` to now + TTL and moves `next_run_at` to the same moment. A job is
therefore *due* exactly when nobody holds it: the query that finds waiting jobs also finds the
jobs of dead workers, and no sweeper has to run for a job to be rescued. The TTL is short (30 s)
and renewed every third of it, however long the job takes, so a dead worker's job waits seconds
and not an hour.

**The fence (kept by every write).** Taking a job also increments its `fence`. Cursor, finish and
renewal match `{_id, fence}`: once another worker has taken the job, nothing the old one sends can
match any more. A worker that slept through its lease does no harm by waking up; its next write is
refused, it logs one line, counts one `collector_lease_lost_total` and drops the job. Two valid
fences of one job cannot exist, because the number only ever grows inside the statement that hands
the job over.

**The trust window (kept by the worker).** The fence protects the database, not the exchange: a
worker without a lease must not go on fetching. So a worker trusts its lease only until
`trusted_until`, on its own monotonic clock: the moment it *sent* the claim or the last successful
renewal, plus TTL, minus a margin. The server started the TTL later than that, so the worker always
stops first. Renewal is a task of its own and does not wait for the job's awaits; when it cannot
reach MongoDB for a whole trust window, the worker cancels the job by itself.

`lease_token` is made by the client before it asks. When the answer to a claim is lost in a
failover, the token tells whether the claim happened: the worker looks for jobs that carry its name
and hands back those it does not know it holds.

A job that kills its worker (out of memory, a segfault) would be rescued for ever and take the
fleet down with it. Each rescue counts `kills`; the third sets the job aside as failed, with that
reason. Any orderly end of a run sets the count back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.jobs.job import Job

TTL_MS = 30_000
KILLS_BEFORE_SET_ASIDE = 3


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long leases last. Everyone on one database should use the same."""

    ttl_ms: int = TTL_MS

    @property
    def renew_every(self) -> float:
        """Seconds between renewals: two may fail before the lease does."""
        return self.ttl_ms / 3000

    @property
    def trust_seconds(self) -> float:
        """How long a worker believes in a lease after asking for it: TTL minus a tenth."""
        return self.ttl_ms * 0.9 / 1000


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write this job's outcome, as long as the fence stands."""

    job: Job
    fence: int
    lease_token: str
    worker_id: str
    trusted_until: float
    """On the holder's monotonic clock; after it the holder stops by itself."""
    rescued: bool = False

    @property
    def job_id(self) -> ObjectId:
        return self.job.id

    def trusted(self, monotonic: float) -> bool:
        return monotonic < self.trusted_until
