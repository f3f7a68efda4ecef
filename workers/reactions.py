"""From the error that ended a run to the settlement it needs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.backoff import Backoff
from collector.durations import DAY_MS, HOUR_MS
from collector.errors import (
    CollectorError,
    ExchangeBlocked,
    ExchangeRefused,
    NeedsOperator,
    RateLimited,
    RetryLater,
)
from collector.jobs import settlement
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collector.jobs.job import Job
    from collector.jobs.settlement import Settlement

UNEXPECTED = "unexpected"
"""The code of an error that is none of ours."""
JOB_RETRY = Backoff(base_seconds=5.0, max_seconds=600.0)


@dataclass(frozen=True, slots=True)
class Reactions:
    """What a worker makes of the errors that end its runs."""

    backoff: Backoff = JOB_RETRY
    early_ms: int = 0
    """Jobs that wait for tokens come back this much before these are there."""
    lasting_after_ms: int = DAY_MS
    """The same refusal for this long is the exchange's last word."""

    def to(
        self, error: Exception, job: Job, *, moved: bool, now_ms: int, spread: float
    ) -> Settlement:
        """Own budget spent: wait for it. A temporary fault: back off. A permanent one: fail the
        job.

        Progress (`moved`) resets the count of failures. An unknown error is a defect somewhere. It
        is retried like a temporary fault, with its class in the reason, because one bad answer must
        not stop a series for good. A damaged file stays damaged, but after a repair the job must
        continue by itself, so it is retried, too.
        """
        if isinstance(error, RateLimited):
            return settlement.wait_for_token(error, spread, early_ms=self.early_ms)
        if isinstance(error, NeedsOperator) and not isinstance(error, Corrupt):
            return settlement.fail(job, str(error), error.code)
        refusal = error.kind if isinstance(error, ExchangeRefused) else None
        if refusal is not None and not moved and self._is_lasting(job, refusal, now_ms):
            hours = self.lasting_after_ms / HOUR_MS
            words = f"{error} (nothing else for {hours:g} h)"
            return settlement.fail(job, words, ExchangeRefused.code)
        attempt = 1 if moved else job.attempt
        ours = isinstance(error, CollectorError)
        reason = str(error) if ours else f"{type(error).__name__}: {error}"
        return settlement.retry(
            attempt,
            reason,
            self.backoff,
            spread,
            at_least_ms=_demanded_ms(error),
            refusal=refusal,
            code=error.code if isinstance(error, CollectorError) else UNEXPECTED,
        )

    def _is_lasting(self, job: Job, refusal: str, now_ms: int) -> bool:
        held = job.document.get("refused") or {}
        same = held.get("kind") == refusal
        return same and now_ms - held["since"] >= self.lasting_after_ms


def _demanded_ms(error: Exception) -> int:
    """How long the exchange wants this job to wait.

    A ban is recorded on the connector: none of its jobs is leased before it ends, and all of them
    are when an operator ends it.
    """
    if isinstance(error, RetryLater) and not isinstance(error, ExchangeBlocked):
        return error.retry_after_ms or 0
    return 0
