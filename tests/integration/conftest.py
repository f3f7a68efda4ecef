"""Fixtures that several modules of integration tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.datalayer_stage import stage  # noqa: F401 - a fixture
from tests.support.fxcm.collecting import fx  # noqa: F401 - a fixture
from tests.support.fxcm.fixtures import fxcm_python, fxcm_server  # noqa: F401 - fixtures
from tests.support.lasting_tokens import lasting_tokens  # noqa: F401 - a fixture
from tests.support.local_api import fresh_database, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.local_api import Client


@pytest.fixture(scope="module")
async def client(mongo_uri: str, root: Path) -> AsyncIterator[Client]:
    """An API for the length of a module, on the lake that the module's own `root` has made."""
    async with fresh_database(mongo_uri) as database, serving(database, root) as client:
        yield client


@pytest.fixture(scope="module")
async def served_database(mongo_uri: str) -> AsyncIterator[Database]:
    """A database for the length of a module; its tests empty it between them."""
    async with fresh_database(mongo_uri) as database:
        yield database


@pytest.fixture(scope="module")
async def server(
    served_database: Database, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Client]:
    """An API on it, with an empty lake."""
    async with serving(served_database, tmp_path_factory.mktemp("lake")) as client:
        yield client
