"""A mongod that a test may hurt, and verbs beside a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.mongo.client import Database
from collector.mongo.embedded import EmbeddedMongo
from migrations import runner
from tests.support.datalayer_stage import stage  # noqa: F401 - a fixture
from tests.support.fxcm.fixtures import fxcm_python, fxcm_server  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def own_mongo(tmp_path: Path) -> AsyncIterator[EmbeddedMongo]:
    async with await EmbeddedMongo.start(tmp_path / "home", purpose="test") as mongo:
        yield mongo


@pytest.fixture
async def own_database(own_mongo: EmbeddedMongo) -> AsyncIterator[Database]:
    """A database at the current schema on it."""
    async with Database(own_mongo.uri, "test") as database:
        await database.read_server_clock()
        await runner.up(database)
        yield database
