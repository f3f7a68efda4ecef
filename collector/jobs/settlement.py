"""How a run ends, as data. Pure: decides what the job's document becomes, writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs.states import BY_NAME, Transition

if TYPE_CHECKING:
    from collector.backoff import Backoff
    from collector.errors import RateLimited
    from collector.jobs.job import Cursor, Job

WAIT_SPREAD_MS = 20
"""Jobs that wait for the same window come back over this many milliseconds, not all at once."""

CLOSED_REASONS = frozenset({"paused", "deleted", "blocked", "circuit"})
CLOSED_WAIT_MS = 1_000


@dataclass(frozen=True, slots=True)
class Settlement:
    """What finishing a lease writes.

    `next_run_in_ms` counts from the server's now; `next_run_at` is a date on its clock. `attempt`
    None gives the attempt back, as if the run had not happened.
    """

    transition: Transition
    next_run_at: int | None = None
    next_run_in_ms: int = 0
    attempt: int | None = None
    waiting_for: str | None = None
    error: str | None = None
    cursor: Cursor | None = None

    @property
    def succeeded(self) -> bool:
        return self.transition.name in ("again", "done", "vanish")

    @property
    def counts_as_run(self) -> bool:
        return self.succeeded or self.error is not None


def again(job: Job, now_ms: int, spread: float, *, cursor: Cursor | None = None) -> Settlement:
    """Done for now."""
    return Settlement(
        BY_NAME["again"],
        next_run_at=job.schedule.next_run(now_ms, spread),
        attempt=0,
        cursor=cursor,
    )


def done(*, vanish: bool = False, cursor: Cursor | None = None) -> Settlement:
    """Done for good."""
    return Settlement(BY_NAME["vanish" if vanish else "done"], attempt=0, cursor=cursor)


def wait_for_token(denied: RateLimited, spread: float, *, early_ms: int = 0) -> Settlement:
    """Back when the budget is, or `early_ms` before: being leased takes time, too.

    A closed exchange (paused, blocked, tripped) is not leased from anyway; its jobs stay close at
    hand, so that they start when a person opens it early.
    """
    wait = BY_NAME["wait"]
    extra = round(WAIT_SPREAD_MS * spread)
    if denied.retry_at_ms is not None and denied.reason not in CLOSED_REASONS:
        # A date and not a distance: pages in flight may have taken a while since the denial.
        return Settlement(
            wait, next_run_at=denied.retry_at_ms - early_ms + extra, waiting_for=denied.reason
        )
    later = min(denied.retry_after_ms or 0, CLOSED_WAIT_MS) + extra
    return Settlement(wait, next_run_in_ms=later, waiting_for=denied.reason)


def retry(
    job: Job, error: str, backoff: Backoff, spread: float, *, at_least_ms: int = 0
) -> Settlement:
    """Back after a pause that grows with every failure in a row."""
    pause_ms = round(backoff.delay(job.attempt, spread) * 1000)
    return Settlement(
        BY_NAME["retry"],
        next_run_in_ms=max(pause_ms, at_least_ms),
        attempt=job.attempt,
        waiting_for="retry",
        error=error,
    )


def fail(job: Job, error: str) -> Settlement:
    """Waits for a person."""
    return Settlement(BY_NAME["fail"], attempt=job.attempt, error=error)


def give_back() -> Settlement:
    """The worker is leaving: next in line, now."""
    return Settlement(BY_NAME["give_back"])


def put_down() -> Settlement:
    """The job was paused or deleted under the worker."""
    return Settlement(BY_NAME["put_down"])
