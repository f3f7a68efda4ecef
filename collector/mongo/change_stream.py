"""A change stream that is being read, and cancellation that the driver cannot swallow."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pymongo.asynchronous.change_stream import AsyncDatabaseChangeStream


class Following:
    """A change stream that is being read."""

    def __init__(self, stream: AsyncDatabaseChangeStream[dict[str, Any]]) -> None:
        self._stream = stream

    async def __call__(self) -> dict[str, Any] | None:
        """The next change; None when nothing happened for a second.

        DatabaseUnavailable when the stream has ended.
        """
        with keeping_cancellation():
            change = await self._stream.try_next()
        if change is None and not self._stream.alive:
            # A stream whose database was dropped returns at once for ever, without a wait.
            raise DatabaseUnavailable("the change stream has ended: the database was dropped")
        return change

    @property
    def place(self) -> str | None:
        """Where it is: everything before was returned. For `resume_after`."""
        token: Any = self._stream.resume_token
        return None if token is None else str(token["_data"])


@contextmanager
def keeping_cancellation() -> Iterator[None]:
    """Raises CancelledError at the end of the block when the driver has swallowed one.

    The driver takes a cancelled read for a broken connection and repeats it: the cancelled task
    would continue as if nothing had happened, and a caller that waits for its end would wait for
    ever.
    """
    task = asyncio.current_task()
    requests = task.cancelling() if task else 0
    try:
        yield
    finally:
        if task and task.cancelling() > requests:
            raise asyncio.CancelledError
