"""Every migration, in order.

To add one: write mNNNN_name.py, list it here, raise `collector.mongo.schema.VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrations.versions import m0001_collections, m0002_legacy_limiter

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
)
