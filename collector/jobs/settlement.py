"""How a run ends, as data. Pure: decides what the job's document becomes, writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.jobs.states import BY_NAME, JobTransition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.backoff import Backoff
    from collector.errors import RateLimited
    from collector.jobs.cursor import CursorShape
    from collector.jobs.job import Job

WAIT_SPREAD_MS = 20
"""Jobs that wait for the same window are spread over this many milliseconds, not all at once."""

ASKED_LATER = "asked_later"
"""`waiting_for` of a job that only has to let time pass."""

CLOSED_REASONS = frozenset({"paused", "deleted", "blocked", "circuit"})
CLOSED_WAIT_MS = 1_000


@dataclass(frozen=True, slots=True)
class Settlement:
    """What finishing a lease writes.

    `next_run_in_ms` counts from the server's now; `next_run_at` is a date on its clock, which
    showed `as_of_ms` when the date was computed. `attempt` None gives the attempt back, as if the
    run had not happened.
    """

    transition: JobTransition
    next_run_at: int | None = None
    as_of_ms: int = 0
    next_run_in_ms: int = 0
    attempt: int | None = None
    waiting_for: str | None = None
    error: str | None = None
    code: str | None = None
    """The error's code, for machines."""
    refusal: str | None = None
    """The kind of refusal that ended the run; the job stores since when it has been the same."""
    cursor: CursorShape | None = None
    progress: Mapping[str, Any] | None = None

    @property
    def succeeded(self) -> bool:
        return self.transition.name in ("again", "done", "vanish")

    @property
    def counts_as_run(self) -> bool:
        return self.succeeded or self.error is not None


def again(
    job: Job,
    now_ms: int,
    spread: float,
    *,
    cursor: CursorShape | None = None,
    progress: Mapping[str, Any] | None = None,
) -> Settlement:
    """Done for now."""
    return Settlement(
        BY_NAME["again"],
        next_run_at=job.schedule.next_run(now_ms, spread),
        as_of_ms=now_ms,
        attempt=0,
        cursor=cursor,
        progress=progress,
    )


def later(after_ms: int, cursor: CursorShape, progress: Mapping[str, Any]) -> Settlement:
    """Runs again after this much time, whatever the schedule."""
    return Settlement(
        BY_NAME["again"],
        next_run_in_ms=after_ms,
        attempt=0,
        waiting_for=ASKED_LATER,
        cursor=cursor,
        progress=progress,
    )


def done(
    *,
    vanish: bool = False,
    cursor: CursorShape | None = None,
    progress: Mapping[str, Any] | None = None,
) -> Settlement:
    """Done for good."""
    name = "vanish" if vanish else "done"
    return Settlement(BY_NAME[name], attempt=0, cursor=cursor, progress=progress)


def wait_for_token(denied: RateLimited, spread: float, *, early_ms: int = 0) -> Settlement:
    """Runs again when the budget allows, or `early_ms` before, because leasing takes time too.

    Jobs of a closed exchange (paused, blocked, tripped) are not leased anyway; they stay nearly
    due, so that they start as soon as an operator opens it early.
    """
    wait = BY_NAME["wait"]
    extra = round(WAIT_SPREAD_MS * spread)
    if denied.retry_at_ms is not None and denied.reason not in CLOSED_REASONS:
        # A date, not a duration: pages in flight may have taken a while since the denial.
        return Settlement(
            wait,
            next_run_at=denied.retry_at_ms - early_ms + extra,
            as_of_ms=denied.retry_at_ms - (denied.retry_after_ms or 0),
            waiting_for=denied.reason,
        )
    later = min(denied.retry_after_ms or 0, CLOSED_WAIT_MS) + extra
    return Settlement(wait, next_run_in_ms=later, waiting_for=denied.reason)


def retry(
    attempt: int,
    error: str,
    backoff: Backoff,
    spread: float,
    *,
    at_least_ms: int = 0,
    refusal: str | None = None,
    code: str | None = None,
) -> Settlement:
    """Retries after a pause that grows with `attempt`, the failures in a row without progress."""
    pause_ms = round(backoff.delay(attempt, spread) * 1000)
    return Settlement(
        BY_NAME["retry"],
        next_run_in_ms=max(pause_ms, at_least_ms),
        attempt=attempt,
        waiting_for="retry",
        error=error,
        code=code,
        refusal=refusal,
    )


def fail(job: Job, error: str, code: str | None = None) -> Settlement:
    """Waits for an operator."""
    return Settlement(BY_NAME["fail"], attempt=job.attempt, error=error, code=code)


def give_back() -> Settlement:
    """The worker is stopping: the job is due at once."""
    return Settlement(BY_NAME["give_back"])


def put_down() -> Settlement:
    """The job was paused or deleted under the worker."""
    return Settlement(BY_NAME["put_down"])
