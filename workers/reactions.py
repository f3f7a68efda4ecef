"""From the error that ended a run to the settlement it asks for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import CollectorError, NeedsOperator, RateLimited, RetryLater
from collector.jobs import settlement

if TYPE_CHECKING:
    from collector.backoff import Backoff
    from collector.jobs.job import Job
    from collector.jobs.settlement import Settlement


def react(
    error: Exception, job: Job, backoff: Backoff, spread: float, *, early_ms: int = 0
) -> Settlement:
    """Own budget spent: wait for it. A passing fault: back off. A lasting one: tell a person.

    An error that is not ours is a defect somewhere. It is retried like a passing fault, with its
    class in the reason, because one bad answer must not stop a series for good.
    """
    if isinstance(error, RateLimited):
        return settlement.wait_for_token(error, spread, early_ms=early_ms)
    if isinstance(error, NeedsOperator):
        return settlement.fail(job, str(error))
    if isinstance(error, RetryLater):
        at_least = error.retry_after_ms or 0
        return settlement.retry(job, str(error), backoff, spread, at_least_ms=at_least)
    said = str(error) if isinstance(error, CollectorError) else f"{type(error).__name__}: {error}"
    return settlement.retry(job, said, backoff, spread)
