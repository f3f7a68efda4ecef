"""Fixtures that several modules of integration tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.serving import fresh_database, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.serving import Client


@pytest.fixture(scope="module")
async def client(mongo_uri: str, root: Path) -> AsyncIterator[Client]:
    """An API for the length of a module, on the lake that the module's own `root` has made."""
    async with fresh_database(mongo_uri) as database, serving(database, root) as client:
        yield client
