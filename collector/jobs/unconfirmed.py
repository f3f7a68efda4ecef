"""Open silences of jobs: slots that an exchange reports as empty and that are not believed yet.

A job keeps them in `progress.silences` and asks about them again (collector/pipeline/evidence.py).
Until they are settled no answer covers these slots, so readers get `missing`. Reports and lag call
them *unconfirmed* for three days from the first such answer; after that they are missing like any
other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.jobs import types
from collector.jobs.states import Status
from collector.market.timeframe import Timeframe
from collector.pipeline.evidence import LATEST_MS, Silence, young_slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.mongo.client import Database, Document

SILENCES_INDEX = "silences"
SILENT = {"progress.silences": {"$exists": True}}
"""In a statement: the jobs that have open silences."""
_LIVE = types.OHLCV_INCREMENTAL.name


def silences_of(progress: Mapping[str, Any] | None) -> tuple[Silence, ...]:
    """The open silences that a job's progress holds."""
    return tuple(Silence(*numbers) for numbers in (progress or {}).get("silences") or ())


def progress_with_silences(
    progress: Mapping[str, Any], silences: Iterable[Silence]
) -> dict[str, Any]:
    """A job's progress with these open silences and no others."""
    rest = {name: value for name, value in progress.items() if name != "silences"}
    documents = [silence.document() for silence in silences]
    return {**rest, "silences": documents} if documents else rest


def open_silences(job: Mapping[str, Any]) -> tuple[Silence, ...]:
    """The silences of a job's document, with `due_ms` as the time at which its job asks again.

    A job that is paused does not ask, so that its silences have 0. A live series that is silent up
    to now is silent for some slots more, about which no answer claims anything yet.
    """
    asks = job["status"] == Status.ACTIVE
    silences = [
        replace(each, due_ms=max(each.due_ms, job["next_run_at"]) if asks else 0)
        for each in silences_of(job.get("progress"))
    ]
    if silences and job["type"] == _LIVE:
        last = max(silences, key=lambda each: each.to_ms)
        frame = _frame_of(job)
        end_ms = frame.shift(last.to_ms, young_slots(frame))
        silences[silences.index(last)] = replace(last, to_ms=end_ms)
    return tuple(silences)


def is_unconfirmed(silence: Silence, now_ms: int) -> bool:
    """Whether it may still turn out to be true. Later its slots count as missing."""
    return _is_recent(silence.first_at, now_ms)


@dataclass(frozen=True, slots=True)
class UnconfirmedTail:
    """The end of a live series whose newest slots are reported as empty."""

    exchange_id: str
    timeframe: str
    since_ms: int
    """The cursor of its job: everything before this is stored."""
    until_ms: int
    """Everything before this is stored, or reported as empty."""


async def unconfirmed_tails(database: Database, now_ms: int) -> list[UnconfirmedTail]:
    """Of all active series, by one statement. It reads those that are silent and no others."""
    documents = await database.jobs.aggregate(
        [
            {"$match": {"type": _LIVE, "status": Status.ACTIVE.value, **SILENT}},
            {
                "$project": {
                    "exchange_id": 1,
                    "symbol": 1,
                    "timeframe": 1,
                    "since_ms": "$cursor.since_ms",
                    "to_ms": {"$max": _column("to_ms")},
                    "first_at": {"$min": _column("first_at")},
                }
            },
        ],
        hint=SILENCES_INDEX,
    )
    found = [
        (each, _until(each, each["since_ms"], each["to_ms"], each["first_at"], now_ms))
        for each in documents
    ]
    return [
        UnconfirmedTail(each["exchange_id"], each["timeframe"], each["since_ms"], until_ms)
        for each, until_ms in found
        if until_ms is not None
    ]


def unconfirmed_until(job: Mapping[str, Any], since_ms: int, now_ms: int) -> int | None:
    """Up to where a live series is stored or reported as empty; None when no silence is open."""
    silences = silences_of(job.get("progress"))
    if not silences:
        return None
    to_ms = max(each.to_ms for each in silences)
    return _until(job, since_ms, to_ms, min(each.first_at for each in silences), now_ms)


def _until(
    job: Mapping[str, Any], since_ms: int, to_ms: int, first_at: int, now_ms: int
) -> int | None:
    """Every silence that the job of a live series keeps lies behind its cursor: what had an end,
    and the older part of a long one, was handed to gap jobs.
    """
    if not _is_recent(first_at, now_ms):
        return None
    frame = _frame_of(job)
    return max(since_ms, min(frame.shift(to_ms, young_slots(frame)), frame.floor(now_ms)))


def _is_recent(first_at: int, now_ms: int) -> bool:
    return now_ms - first_at <= LATEST_MS


def _frame_of(job: Mapping[str, Any]) -> Timeframe:
    return Timeframe.parse(job["timeframe"]).at(job["exchange_id"], job["symbol"])


def _column(name: str) -> Document:
    """In a statement: one number of every silence of a job."""
    place = Silence.__slots__.index(name)
    return {
        "$map": {"input": "$progress.silences", "in": {"$arrayElemAt": ["$$this", place]}},
    }
