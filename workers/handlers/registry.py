"""From a job's type to the code that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collector.errors import NeedsOperator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.jobs.job import Cursor
    from workers.job_run import JobRun


@dataclass(frozen=True, slots=True)
class Again:
    """Done for now; the job's schedule says when next. The cursor is written with the finish."""

    cursor: Cursor | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """Done for good. `vanish` leaves no job behind."""

    cursor: Cursor | None = None
    vanish: bool = False


Outcome = Again | Done


class Handler(Protocol):
    """Runs one job until it is done, out of tokens, or told to stop.

    Anything it must not repeat it commits with `run.commit`. It lets errors out: the runtime
    turns each into the reaction that its class names.
    """

    async def __call__(self, run: JobRun) -> Outcome: ...


class HandlerRegistry:
    """The handlers of this worker."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = dict(handlers)

    def find(self, job_type: str) -> Handler:
        handler = self._handlers.get(job_type)
        if handler is None:
            known = ", ".join(sorted(self._handlers))
            raise NeedsOperator(f"no handler for jobs of type {job_type!r}; known: {known}")
        return handler
