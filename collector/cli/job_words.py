"""A job in words: where its work is, and why it does not go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Shown = Mapping[str, Any]

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


def job_words(job: Shown) -> str:
    series = " ".join(filter(None, (whose(job), job["symbol"], job["timeframe"])))
    return f"{job['type']} of {series} ({job['id']}, {state_words(job)})"


def whose(job: Shown) -> str:
    """Its exchange, or its network."""
    return str(job["exchange_id"] or job["network"])


def state_words(job: Shown) -> str:
    """Where the work is, and the operator's status where it adds something."""
    if job["cursor"].get("done"):
        return "done"
    if job["status"] != "active":
        failed = job["state"] == "failed" and job["status"] == "paused"
        return "failed" if failed else str(job["status"])
    waiting = job["waiting_for"]
    return f"{job['state']} ({waiting})" if waiting else str(job["state"])


def reason_words(job: Shown) -> str:
    """Its last error, or what it waits for; empty for a job that works or is done."""
    error, waiting = job["stats"]["last_error"] or "", job["waiting_for"] or ""
    if job["cursor"].get("done"):
        return ""
    if job["status"] == "active" and error and job["attempt"]:
        return f"try {job['attempt']} failed: {error}"
    if job["status"] != "active" and error:
        return str(error)
    return _WAITS.get(waiting, waiting)
