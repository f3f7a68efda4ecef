"""Looks for troubles while anyone listens, and reports the list when it has changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from api.schemas.troubles import TroublePage
from collector.errors import DatabaseUnavailable
from collector.operations.trouble_facts import troubles_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.mongo.client import Database
    from collector.operations.troubles import Trouble

LOOK_SECONDS = 5.0


class TroubleWatch:
    """One look every few seconds for all listeners of a process."""

    def __init__(self, database: Database, report: Callable[[bytes], None]) -> None:
        self._database = database
        self._report = report
        self._known: frozenset[tuple[str, str]] = frozenset()

    async def keep_going(self, wanted: asyncio.Event) -> None:
        """Until cancelled; looks only while `wanted` is set."""
        while True:
            if not wanted.is_set():
                self._known = frozenset()  # The next listener gets what there is.
                await wanted.wait()
            await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        try:
            found = await troubles_now(self._database)
        except DatabaseUnavailable:
            return  # A refused user: the request itself reports it.
        kinds = _kinds(found)
        if kinds != self._known:
            self._known = kinds
            self._report(TroublePage.of(found).model_dump_json().encode())


def _kinds(found: list[Trouble]) -> frozenset[tuple[str, str]]:
    """What makes two lists differ: reasons contain counts, which change all the time."""
    return frozenset(each.key for each in found)
