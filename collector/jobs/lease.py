"""The lease: the right to write one job's outcome until it expires.

Why it is built this way
------------------------
A worker can die, hang, be stopped for an hour and go on as if nothing had happened, or lose the
network while its process is fine. These cases look the same from outside, so the protocol does
not distinguish them. It rests on three guarantees, each given by a different party.

**The lease (kept by MongoDB).** Taking a due job is one `findOneAndUpdate` on the server's clock.
It sets `lock.lock_until` to now + TTL and moves `next_run_at` to the same moment. A job is
therefore *due* exactly when no worker holds it: the query that finds waiting jobs also finds the
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

`lease_token` is made by the client before it sends the claim. When the answer is lost in a
failover, the token shows whether the claim happened: the worker looks for jobs that carry its name
and hands back those it does not know it holds.

A job that kills its worker (out of memory, a segfault) would be rescued for ever and kill one
worker after another. So each rescue increments `kills`, except when the worker that lost the job
takes it again, or when MongoDB was away or its clock was set: then no worker died. After three the
job is a suspect and runs alone in its worker (workers/alone.py), because it may only have shared a
process with the one that kills. Three deaths alone set it aside as failed, with that reason. Any
progress and any orderly end of a run set the counts back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.jobs.job import Job

KILLS_BEFORE_ALONE = 3
KILLS_BEFORE_SET_ASIDE = 3
"""Counts only deaths while the job ran alone."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write this job's outcome, as long as the fence is current."""

    job: Job
    fence: int
    lease_token: str
    worker_id: str
    trusted_until: float
    """On the holder's monotonic clock; after it the holder stops by itself."""
    kills: int = 0
    """How often in a row its worker seems to have died."""

    @property
    def suspect(self) -> bool:
        """Whether the job may be what kills its workers: it has to run alone."""
        return self.kills >= KILLS_BEFORE_ALONE

    @property
    def job_id(self) -> ObjectId:
        return self.job.id

    def trusted(self, monotonic: float) -> bool:
        return monotonic < self.trusted_until
