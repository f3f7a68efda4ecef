"""Dates of answers as dates, so that they print like those of the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

DATES = frozenset(
    {"creation_date", "last_job_run_time", "created_at", "updated_at", "started_at", "seen_at"}
)
"""Fields that hold text where they are dates; elsewhere the same names are epoch ms."""


def with_dates(value: Any) -> Any:
    """The same answer, its dates read."""
    if isinstance(value, list):
        return [with_dates(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _read(name, each) for name, each in value.items()}


def _read(name: str, value: Any) -> Any:
    if name in DATES and isinstance(value, str):
        return datetime.fromisoformat(value)
    return with_dates(value)
