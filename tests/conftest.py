"""A real mongod for the whole session, and in it a database for every test."""

from __future__ import annotations

import atexit
import gc
import os
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from pymongo import MongoClient

from collector import logs
from collector.mongo.client import Database
from collector.mongo.embedded import EmbeddedMongo
from tests.support.databases import Shelf, new_name
from tests.support.driver_logins import remembering_logins
from tests.support.driver_sockets import closing_driver_sockets
from tests.support.lakes import bucket, lake  # noqa: F401 - fixtures
from tests.support.redis_fixtures import redis_server  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

# A busy machine is slow, and no test judges how fast it is. New examples are looked for by
# developers all day; what guards main is judged by the same ones every time.
hypothesis.settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
hypothesis.settings.load_profile("any machine")


PROOF = ("tests/acceptance/", "tests/browser/", "tests/property/")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `make test` leaves to `make acceptance`, and what that runs."""
    for item in items:
        if "bucket" in getattr(item, "fixturenames", ()):
            item.add_marker("s3")
        if item.nodeid.startswith(PROOF):
            item.add_marker("proof")


gc.disable()  # Until everything is collected: modules and tests are no garbage.


def pytest_collection_finish() -> None:
    """They stay to the end, too: garbage is looked for among what the tests make."""
    gc.freeze()
    gc.enable()
    # Extensions complain about what is left of them when the process ends.
    atexit.register(gc.unfreeze)


@pytest.fixture(scope="session", autouse=True)
def _quiet_logs() -> None:
    logs.configure("CRITICAL", "json")


@pytest.fixture(scope="session", autouse=True)
def _driver_for_many_clients() -> Iterator[None]:
    with closing_driver_sockets(), remembering_logins():
        yield


@pytest.fixture(scope="session")
async def mongo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedMongo]:
    """The embedded mongod under test is also the one the tests run on."""
    async with await EmbeddedMongo.start(tmp_path_factory.mktemp("home"), purpose="tests") as mongo:
        await _keep_expired(mongo.uri)
        yield mongo


async def _keep_expired(uri: str) -> None:
    """Once a minute mongod removes what has expired: runs that a test dates to 1970, too."""
    async with Database(uri, "admin") as admin:
        await admin.raw.command({"setParameter": 1, "ttlMonitorEnabled": False})


@pytest.fixture(scope="session")
def mongo_uri(mongo: EmbeddedMongo) -> str:
    return mongo.uri


@pytest.fixture
def database_name() -> str:
    return new_name()


@pytest.fixture
async def empty_database(mongo_uri: str, database_name: str) -> AsyncIterator[Database]:
    """A database without migrations."""
    async with Database(mongo_uri, database_name) as database:
        await database.read_server_clock()
        yield database
        await database.raw.client.drop_database(database_name)


@pytest.fixture(scope="session")
def shelf(mongo_uri: str) -> Iterator[Shelf]:
    with MongoClient[dict[str, Any]](mongo_uri) as caretaker:
        yield Shelf(mongo_uri, caretaker)


@pytest.fixture
async def database(shelf: Shelf) -> AsyncIterator[Database]:
    """A database at the current schema with nothing in it."""
    async with shelf.database() as database:
        yield database
