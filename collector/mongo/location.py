"""Which MongoDB to use: the configured one, the one a running owner announced, or our own."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from collector.errors import HomeInUse
from collector.mongo.home import announced_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.mongo.embedded import EmbeddedMongo

PATIENCE_SECONDS = 60.0
"""How long another process may take to start the MongoDB of the home."""
_LOOK_EVERY = 0.2


@asynccontextmanager
async def mongodb(
    uri: str | None, home: Path, purpose: str, *, patience: float = PATIENCE_SECONDS
) -> AsyncIterator[str]:
    """A URI that answers for as long as the block lasts.

    With `uri` nothing is embedded. Without one, the embedded MongoDB of this home is joined when
    another process runs it or is just starting it, and otherwise started for the length of the
    block. HomeInUse when the other one is not ready after `patience` seconds.
    """
    joined = uri or announced_uri(home)
    if joined is not None:
        yield joined
        return
    found = await _started_or_joined(home, purpose, patience)
    if isinstance(found, str):
        yield found
        return
    async with found:
        yield found.uri


async def _started_or_joined(home: Path, purpose: str, patience: float) -> EmbeddedMongo | str:
    # Most processes are told where MongoDB is, and start none.
    from collector.mongo.embedded import EmbeddedMongo

    give_up_at = time.monotonic() + patience
    while True:
        try:
            return await EmbeddedMongo.start(home, purpose=purpose)
        except HomeInUse:
            if (joined := announced_uri(home)) is not None:
                return joined
            if time.monotonic() > give_up_at:
                raise
        await asyncio.sleep(_LOOK_EVERY)
