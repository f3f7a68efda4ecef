"""Why a job does not do its work, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.states import Status

if TYPE_CHECKING:
    from collector.jobs.job import Job

_WAITS = {
    "window": "the exchange's budget is spent",
    "blocked": "the exchange has blocked us",
    "circuit": "the circuit gate is not open",
    "paused": "its connector is paused",
    "priority_reserve": "what is left of the budget is kept for urgent jobs",
    "asked_later": "an empty answer is requested again later",
    "delisted": "its symbol was delisted",
    "renamed": "its symbol was renamed",
}
"""What `waiting_for` means, where the word alone does not explain it."""


def reason_words(job: Job) -> str:
    """Its last error, or what it waits for; empty for a job that works or is done."""
    stats, waiting = job.document.get("stats") or {}, job.document.get("waiting_for") or ""
    error = stats.get("last_error") or ""
    if job.cursor.done:
        return ""
    if job.status is Status.ACTIVE and error and job.attempt:
        return f"try {job.attempt} failed: {error}"
    if job.status is not Status.ACTIVE and error:
        return str(error)
    return _WAITS.get(waiting, waiting)
