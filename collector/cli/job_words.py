"""A job in words: what it is, and where its work is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Shown = Mapping[str, Any]


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
