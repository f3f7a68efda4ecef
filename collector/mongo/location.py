"""Which MongoDB to use: the configured one, the one a running owner announced, or our own."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from collector.mongo.home import announced_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def mongodb(uri: str | None, home: Path, purpose: str) -> AsyncIterator[str]:
    """A URI that answers for as long as the block lasts.

    With `uri` nothing is embedded. Without one, the embedded MongoDB of this home is joined when
    another process runs it, and otherwise started for the length of the block.
    """
    joined = uri or announced_uri(home)
    if joined is not None:
        yield joined
        return
    # Most processes are told where MongoDB is, and start none.
    from collector.mongo.embedded import EmbeddedMongo

    async with await EmbeddedMongo.start(home, purpose=purpose) as mongo:
        yield mongo.uri
