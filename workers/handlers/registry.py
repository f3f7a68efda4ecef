"""From a job's type to the code that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.jobs.cursor import CursorShape
    from workers.job_run import JobRun


@dataclass(frozen=True, slots=True)
class Again:
    """Done for now; the job's schedule sets the next run.

    Cursor and progress are written with the finish, in one statement.
    """

    cursor: CursorShape | None = None
    progress: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """Not done, and nothing can be done before `after_ms` have passed. No failure."""

    after_ms: int
    cursor: CursorShape
    progress: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """Done for good. `vanish` leaves no job behind."""

    cursor: CursorShape | None = None
    vanish: bool = False
    progress: Mapping[str, Any] | None = None


Outcome = Again | Later | Done


class Handler(Protocol):
    """Runs one job until it is done, out of tokens, or stopped.

    It commits with `run.commit` what must not be repeated, and raises errors: the runtime turns
    each into the reaction that its class names.
    """

    async def __call__(self, run: JobRun) -> Outcome: ...


class MadeLate:
    """A handler that is made when its first job runs."""

    def __init__(self, make: Callable[[], Handler]) -> None:
        self._make = make
        self._handler: Handler | None = None

    def made(self) -> Handler:
        if self._handler is None:
            self._handler = self._make()
        return self._handler

    async def __call__(self, run: JobRun) -> Outcome:
        return await self.made()(run)


class HandlerRegistry:
    """The handlers of this worker."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = dict(handlers)

    @property
    def types(self) -> set[str]:
        """The types of job that this worker can run."""
        return set(self._handlers)

    def find(self, job_type: str) -> Handler:
        """The handler of one of `types`; a worker claims no others."""
        return self._handlers[job_type]
