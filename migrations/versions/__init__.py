"""Every migration, in order.

To add one: write mNNNN_name.py, list it here, raise `collector.mongo.schema.VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrations.versions import (
    m0001_collections,
    m0002_legacy_limiter,
    m0003_job_lists,
    m0004_history_inbox,
    m0005_live,
    m0006_failing_jobs,
    m0007_open_silences,
    m0008_requested_jobs,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.mongo.client import Database


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. `apply` must be safe to run again after dying half-way."""

    version: int
    name: str
    apply: Callable[[Database], Awaitable[None]]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(1, "collections and indexes", m0001_collections.apply),
    Migration(2, "remove the per-job limiter", m0002_legacy_limiter.apply),
    Migration(3, "indexes for many jobs", m0003_job_lists.apply),
    Migration(4, "the inbox of trade history", m0004_history_inbox.apply),
    Migration(5, "live prices", m0005_live.apply),
    Migration(6, "jobs that keep failing", m0006_failing_jobs.apply),
    Migration(7, "series with open silences", m0007_open_silences.apply),
    Migration(8, "when something was requested of a job", m0008_requested_jobs.apply),
)
