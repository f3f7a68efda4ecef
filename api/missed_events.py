"""What a listener missed while it was away: changes since the id of the last event that it has.

An id is the place in MongoDB's own change stream, so a client resumes at any API process, also one
that was started meanwhile. When the stream no longer reaches back so far, or too much has changed,
the client is told to read the lists again.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

from pymongo.errors import PyMongoError

from api.changed_documents import NOTICED, ChangedDocuments, events_of
from api.listener import ServerEvent
from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collector.mongo.client import Database

MOST_MISSED = 2_000
"""Documents; for more of them the lists are cheaper."""
PATIENCE_SECONDS = 5.0
_PLACE = re.compile(r"[0-9A-F]{16,1024}")


async def missed_events(database: Database, since: str, until: str | None) -> list[ServerEvent]:
    """The documents that changed after `since`, as they are now; or one event that says why not.

    `until` is a place up to which everything is known, so that nothing has to be waited for.
    """
    if _PLACE.fullmatch(since) is None:
        return [_gap("no event ever had this id")]
    changed = ChangedDocuments()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with database.changes(NOTICED, resume_after=since) as following:
                while (change := await following()) is not None:
                    changed.gather(change)
                    if len(changed) > MOST_MISSED:
                        return [_gap(f"more than {MOST_MISSED} documents have changed")]
                    # Places in one stream sort as their text does.
                    if until is not None and str(following.place) >= until:
                        break
            found: list[ServerEvent] = []
            while changed:
                found += await events_of(database, changed.take())
            return found
    except TimeoutError:
        return [_gap("it took too long to find out")]
    except (PyMongoError, DatabaseUnavailable):
        return [_gap("MongoDB does not remember that far back")]


def _gap(reason: str) -> ServerEvent:
    document = {"reason": f"{reason}: read the lists again"}
    return ServerEvent("gap", "", json.dumps(document).encode())
