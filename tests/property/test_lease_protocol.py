"""Any order of lease, renew, expire, finish, pause and rescue: never two valid fences.

A state machine drives three workers against a real mongod. The model remembers for every lease
that was ever handed out whether it is still the job's current one; the database must agree with
every write it accepts or refuses.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from collector.backoff import Backoff
from collector.errors import JobConflict, JobStopped, LeaseLost, RateLimited
from collector.jobs import settlement
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.leasing import Leasing
from collector.jobs.queue import JobQueue
from collector.jobs.states import BY_NAME, State, Status
from collector.jobs.sweep import sweep
from collector.mongo.client import Database
from migrations import runner as migrations
from tests.support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from collector.jobs.job import Job
    from collector.jobs.lease import Lease

JOBS = 3
ENDS = {
    "again": lambda lease: settlement.again(lease.job, 0, 0.5),
    "done": lambda _: settlement.done(),
    "vanish": lambda _: settlement.done(vanish=True),
    "wait": lambda _: settlement.wait_for_token(RateLimited("x", 1, "window"), 0.5),
    "retry": lambda lease: settlement.retry(lease.job.attempt, "boom", Backoff(0, 0), 0.5),
    "fail": lambda lease: settlement.fail(lease.job, "boom"),
    "give_back": lambda _: settlement.give_back(),
    "put_down": lambda _: settlement.put_down(),
}

RUN_AGAIN_AFTER = {"again", "done", "retry", "fail"}
"""The ends after which a run that was requested meanwhile follows at once."""


def name(lease: Lease) -> tuple[Any, int]:
    """What tells one lease from every other: a batch shares its token, not its fences."""
    return lease.job_id, lease.fence


class LeaseProtocol(RuleBasedStateMachine):
    runner: asyncio.Runner
    database: Database

    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.queue = JobQueue(self.database)
        self.workers = [Leasing(self.database, name) for name in ("ann", "bob", "cy")]
        self.current: dict[Any, Lease] = {}
        """The lease that holds each job, as far as anyone is allowed to write."""
        self.fences: dict[Any, int] = {}

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def job(self, job_id: Any) -> Job:
        found: Job = self.do(self.queue.get(job_id))
        return found

    def jobs(self) -> dict[Any, dict[str, Any]]:
        return {each["_id"]: each for each in self.do(self.database.jobs.find({}))}

    @initialize()
    def begin(self) -> None:
        self.do(self.database.jobs.delete_many({}))
        for number in range(JOBS):
            self.do(self.queue.add(JobSpec("x", "count", symbol=str(number))))

    @rule(target=leases, who=st.integers(0, 2), wanted=st.integers(1, 3))
    def claim(self, who: int, wanted: int) -> Any:
        self.do(
            self.database.jobs.update_many(
                {"state": {"$in": ["idle", "waiting_rate_limit"]}}, {"$set": {"next_run_at": 1}}
            )
        )
        claimed = self.do(self.workers[who].claim("x", wanted))
        for lease in claimed:
            holder = self.current.get(lease.job_id)
            assert holder is None or name(holder) in self.expired, "two live leases"
            self.current[lease.job_id] = lease
        jobs = self.jobs()
        for job_id, lease in list(self.current.items()):
            if jobs[job_id]["state"] != State.RUNNING:
                del self.current[job_id]  # set aside by a claim
            assert lease.fence <= jobs[job_id]["fence"]
        return multiple(*claimed)

    expired: set[tuple[Any, int]]

    @rule(lease=leases, page=st.integers(0, 99))
    def commit(self, lease: Lease, page: int) -> None:
        status = self.job(lease.job_id).status
        try:
            self.do(self.workers[0].commit(lease, Cursor(page=page)))
            assert self.holds(lease)
            assert status is Status.ACTIVE
        except JobStopped:
            assert self.holds(lease)
            assert status is not Status.ACTIVE
        except LeaseLost:
            assert not self.holds(lease)
            return
        assert self.job(lease.job_id).cursor.page == page

    @rule(lease=leases)
    def renew(self, lease: Lease) -> None:
        renewed, lost = self.do(self.workers[0].renew([lease]))
        assert bool(renewed) == self.holds(lease)
        assert bool(lost) != self.holds(lease)
        if self.holds(lease):
            self.expired.discard(name(lease))

    @rule(lease=leases, end=st.sampled_from(sorted(ENDS)))
    def settle(self, lease: Lease, end: str) -> None:
        held = self.holds(lease)
        before = self.job(lease.job_id)
        already = before.fence == lease.fence and before.state is not State.RUNNING
        try:
            self.do(self.workers[0].settle(lease, ENDS[end](lease)))
            assert held or already
        except LeaseLost:
            assert not held
            assert not already
            return
        if held:
            del self.current[lease.job_id]
            after = self.job(lease.job_id)
            assert after.fence == lease.fence
            if before.status is not Status.ACTIVE:
                assert after.status is before.status
            elif end in RUN_AGAIN_AFTER and before.document["run_again"]:
                assert after.state is State.QUEUED
            else:
                assert after.state is BY_NAME[end].state_to

    @rule(lease=leases)
    def expire(self, lease: Lease) -> None:
        """The lease's time passes."""
        if self.holds(lease):
            self.do(
                self.database.jobs.update_one(
                    {"_id": lease.job_id}, {"$set": {"lock.lock_until": 1, "next_run_at": 1}}
                )
            )
            self.expired.add(name(lease))

    @rule(lease=leases, verb=st.sampled_from(["pause", "resume", "run"]))
    def operate(self, lease: Lease, verb: str) -> None:
        try:
            self.do(getattr(self.queue, verb)(lease.job_id))
        except JobConflict:
            return

    @rule()
    def sweep_up(self) -> None:
        for job_id, lease in list(self.current.items()):
            if name(lease) in self.expired and self.job(job_id).status is not Status.ACTIVE:
                del self.current[job_id]
        self.do(sweep(self.database))

    def holds(self, lease: Lease) -> bool:
        holder = self.current.get(lease.job_id)
        return holder is not None and name(holder) == name(lease)

    @invariant()
    def fences_only_grow_and_a_running_job_has_exactly_the_holder_we_know(self) -> None:
        for job_id, document in self.jobs().items():
            assert document["fence"] >= self.fences.get(job_id, 0)
            self.fences[job_id] = document["fence"]
            if document["state"] == State.RUNNING:
                lease = self.current[job_id]
                assert document["fence"] == lease.fence
                assert document["lock"]["lease_token"] == lease.lease_token


def test_no_two_valid_fences(mongo_uri: str, database_name: str) -> None:
    with asyncio.Runner() as runner:
        database = Database(mongo_uri, database_name)
        runner.run(migrations.up(database))

        class Bound(LeaseProtocol):
            pass

        Bound.runner, Bound.database = runner, database

        def fresh() -> LeaseProtocol:
            machine = Bound()
            machine.expired = set()
            return machine

        try:
            run_state_machine_as_test(
                fresh,
                settings=settings(max_examples=examples(60), stateful_step_count=30, deadline=None),
            )
        finally:
            runner.run(database.raw.client.drop_database(database_name))
            runner.run(database.close())
