"""Why a job does not do its work, and what to do about it, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.states import State, Status

if TYPE_CHECKING:
    from collector.jobs.job import Job

WAITS = {
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

_BY_ITSELF = "Nothing: it is tried again by itself."
ADVICE = {
    "rate_limited": "Nothing: it comes back when the budget has room.",
    "exchange_blocked": "Wait until the block ends. If it repeats, lower the limit.",
    "exchange_unavailable": "Wait: it is tried again by itself. If it lasts, look at the exchange.",
    "exchange_refused": "Wait: it may pass. After a day of the same answer the job fails.",
    "markets_unavailable": "Run the job markets_refresh of the exchange.",
    "session_not_held": "Nothing: another worker holds the session and does the work.",
    "database_unavailable": "Bring MongoDB back; jobs continue by themselves.",
    "database_refused": "Correct MongoDB's user or password in the settings.",
    "store_unavailable": "Make room where the data is; jobs continue by themselves.",
    "store_swapped": _BY_ITSELF,
    "store_error": "Look at the disk and its permissions, then run it again.",
    "needs_operator": "Mend what the error names, then run it again.",
    "bad_config": "Correct the setting that the error names, then run it again.",
    "fxcm_missing": "Install what the error names, then run it again.",
    "fxcm_not_ready": _BY_ITSELF,
    "fxcm_no_data": "Nothing: normal while the market is closed.",
    "fxcm_sidecar_lost": _BY_ITSELF,
    "fxcm_session_lost": "Log in to the account from one place only.",
    "cost_never_fits": "Raise the limit of the window that the error names.",
    "bad_request": "The exchange will never serve this: correct the job, or delete it.",
    "not_served": "Nothing: the job goes on from the oldest bar that the exchange keeps.",
    "key_refused": "Give the exchange a key that may only read, then run it again.",
    "data_invalid": "Look at Quality, then fetch the range again.",
    "time_drift": "Synchronise the clock of MongoDB's machine.",
    "gaps_exceeded": "Fetch what is missing: see Quality.",
}
"""What helps against the error of a code. Errors that ask for nothing say so."""


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
    return WAITS.get(waiting, waiting)


def advice_words(job: Job) -> str | None:
    """What to do about its last error; None when there is none to do something about."""
    stats = job.document.get("stats") or {}
    if job.cursor.done or not stats.get("last_error"):
        return None
    failing = job.state is State.FAILED or job.attempt > 0
    known = ADVICE.get(stats.get("last_error_code") or "")
    if job.state is State.FAILED:
        return known or "Read the error, mend its cause, then run it again."
    return (known or _BY_ITSELF) if failing else None
