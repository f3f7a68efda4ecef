"""Jobs of series, with the history that was asked for: an earlier beginning extends a backfill.

A later beginning changes nothing, because what is stored stays. The answer says which it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.earlier import begins_ms, extend
from collector.jobs.job import Cursor
from collector.operations import connected_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.jobs.job import Job, JobSpec
    from collector.mongo.client import Database


class HistoryAnswer(StrEnum):
    """What a requested beginning meant to a job that existed."""

    SAME = "same"
    EARLIER = "earlier"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class RequestedJob:
    """The job, whether it was created, and else what became of the requested beginning."""

    job: Job
    made: bool
    history: HistoryAnswer = HistoryAnswer.SAME

    @property
    def note(self) -> str | None:
        """One sentence about a beginning that was not where it was before."""
        series = " ".join(filter(None, (self.job.exchange_id, self.job.symbol, self.job.timeframe)))
        begins = shown_day(begins_ms(self.job))
        if self.history is HistoryAnswer.EARLIER:
            paused = " once it is resumed" if self.job.status.value == "paused" else ""
            return f"{series}: earlier history is fetched{paused}, from {begins} on"
        if self.history is HistoryAnswer.LATER:
            return f"{series}: its history begins at {begins} already; a later one changes nothing"
        return None


async def add(
    database: Database, specs: Sequence[JobSpec], *, since_is_given: bool = True
) -> list[RequestedJob]:
    """The jobs, each created if there is none like it, or extended to an earlier beginning.

    Without a given beginning what exists stays as it is.
    """
    found: list[RequestedJob] = []
    added = await connected_jobs.add(database, specs)
    for spec, (job, made) in zip(specs, added, strict=True):
        if made or not since_is_given or not is_extensible(spec.type):
            found.append(RequestedJob(job, made))
        else:
            found.append(await _asked(database, spec, job))
    return found


def is_extensible(kind: str) -> bool:
    """Whether jobs of this type can begin earlier after they were created."""
    return kind == types.OHLCV_BACKFILL.name


def shown_day(ms: int) -> str:
    """A moment in UTC, without the time when that is midnight; 0 is the first bar."""
    if ms == 0:
        return "its first bar"
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    text = moment.strftime("%Y-%m-%d %H:%M")
    return text.removesuffix(" 00:00")


async def _asked(database: Database, spec: JobSpec, job: Job) -> RequestedJob:
    extended = await extend(database, spec)
    if extended is not None:
        return RequestedJob(extended, False, HistoryAnswer.EARLIER)
    assert isinstance(spec.cursor, Cursor)
    is_later = spec.cursor.since_ms > begins_ms(job)
    return RequestedJob(job, False, HistoryAnswer.LATER if is_later else HistoryAnswer.SAME)
