"""A lake of its own for a test: a folder, and the same test again on a prefix of a real bucket."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.store.port import Storage, no_fault
from collector.store.root import storage_at
from collector.store.store import Store
from tests.support.object_server import BUCKET, KEYS, object_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.clock import Clock
    from collector.store.copies import Copies
    from collector.store.port import FaultHook


@dataclass(frozen=True)
class Lake:
    """Where a test keeps its store, and what lies there."""

    place: str
    options: str = ""

    @property
    def root(self) -> str:
        return f"{self.place}{self.options}"

    def beside(self, name: str) -> Lake:
        """Another lake, empty."""
        return replace(self, place=f"{self.place}/{name}")

    def storage(self, faults: FaultHook = no_fault) -> Storage:
        return storage_at(self.root, faults)

    def store(
        self,
        faults: FaultHook = no_fault,
        clock: Clock | None = None,
        copies: Copies | None = None,
    ) -> Store:
        return Store(self.storage(faults), clock=clock, copies=copies)

    def read(self, path: str) -> bytes:
        return self.storage().read(path)

    def write(self, path: str, data: bytes) -> None:
        self.storage().write_atomic(path, data)

    def delete(self, path: str) -> None:
        self.storage().delete(path)

    def table(self, path: str) -> pa.Table:
        return pq.read_table(pa.BufferReader(self.read(path)))

    def metadata(self, path: str) -> pq.FileMetaData:
        return pq.read_metadata(pa.BufferReader(self.read(path)))

    def everything(self, folder: str = "") -> list[str]:
        """The path of every object that anyone can see."""
        storage = self.storage()
        inside = f"{folder}/" if folder else ""
        found = [f"{inside}{name}" for name in storage.names(folder)]
        for name in storage.folders(folder):
            found += self.everything(f"{inside}{name}")
        return found


@pytest.fixture(scope="session")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A bucket on a real S3 server, for the whole session."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        with object_server(tmp_path_factory.mktemp("weed")) as endpoint:
            host = endpoint.removeprefix("http://")
            yield Lake(f"s3://{BUCKET}", f"?scheme=http&endpoint_override={host}")


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.s3)])
def lake(request: pytest.FixtureRequest) -> Lake:
    """An empty lake."""
    if request.param == "disk":
        return Lake(str(request.getfixturevalue("tmp_path")))
    bucket: Lake = request.getfixturevalue("bucket")
    return bucket.beside(secrets.token_hex(6))
