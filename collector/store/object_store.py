"""The storage port on an object store: S3, or anything that speaks it.

An object appears whole with the request that puts it, so there is nothing to rename and nothing to
sync. Unlike a disk, an object store offers neither a file that stays unchanged while it is open,
nor check and replace in one step. Both are done by conditional requests here. A draft waits for its
one request in a local temporary file. pyarrow is used for listing, where it is fastest; for the
rest it is not safe enough (docs/adr/0015).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import secrets
import tempfile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from collector.store.bucket import ANSWER_S, ATTEMPTS, CONNECT_S, bucket_at, default_region
from collector.store.object_errors import translated
from collector.store.pinned import Pinned
from collector.store.port import StorageFault, Swapped, Unavailable, Vanished, no_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedRandom

    from collector.store.address import ObjectAddress
    from collector.store.port import Draft, FaultHook


class ObjectStore:
    """Objects below a prefix of a bucket. Safe to use from many threads and processes at once."""

    def __init__(self, address: ObjectAddress, faults: FaultHook = no_fault) -> None:
        region = address.region or default_region()
        self.address = address
        self._faults = faults
        self._lists = _filesystem(address.endpoint, region)
        self._bucket = bucket_at(address.bucket, address.endpoint, region)
        self._bucket_seen = False

    def write_atomic(self, path: str, data: bytes) -> None:
        with translated(path):
            self._faults(StorageFault.BEFORE_WRITE, path)
            self._faults(StorageFault.MID_WRITE, path)
            self._faults(StorageFault.BEFORE_FSYNC, path)
            with self._placing(path):
                self._bucket.put(self.address.key(path), data)

    @contextlib.contextmanager
    def draft(self, path: str) -> Iterator[Draft]:
        with translated(path):
            self._faults(StorageFault.BEFORE_WRITE, path)
            with _temporary() as file:
                yield ObjectDraft(self, path, file)

    def write_beside(self, path: str, expected: str, companion: tuple[str, bytes]) -> None:
        beside, data = companion
        before = self.stamp(beside)
        if self.stamp(path) != expected:
            raise Swapped(f"{path} was replaced by someone else")
        # A compaction that happens now writes its own companion: then this is refused.
        with self._placing(beside):
            self._bucket.replace(self.address.key(beside), data, before)

    def open(self, path: str) -> Any:
        key = self.address.key(path)
        found = self._bucket.find(key)
        if found is None:
            raise Vanished(f"{path} is not there")
        fetch = functools.partial(self._bucket.get, key, found.etag)
        return pa.PythonFile(Pinned(found.size, fetch), mode="r")

    def read(self, path: str) -> bytes:
        return self._bucket.read(self.address.key(path))

    def sha256(self, path: str) -> str:
        digest = hashlib.sha256()
        for piece in self._bucket.pieces(self.address.key(path)):
            digest.update(piece)
        return digest.hexdigest()

    def stamp(self, path: str) -> str | None:
        found = self._bucket.find(self.address.key(path))
        return found.etag if found is not None else None

    def names(self, folder: str) -> list[str]:
        return self._listed(folder, pafs.FileType.File)

    def folders(self, folder: str) -> list[str]:
        return self._listed(folder, pafs.FileType.Directory)

    def delete(self, path: str) -> None:
        with translated(path):
            self._faults(StorageFault.BEFORE_DELETE, path)
            self._bucket.delete(self.address.key(path))
            self._faults(StorageFault.AFTER_DELETE, path)

    def set_aside(self, path: str, expected: str | None = None) -> str:
        aside = f"{path}.corrupt"
        if expected is not None and self.stamp(aside) is not None:
            aside = f"{aside}-{secrets.token_hex(4)}"
        with translated(path):
            self._bucket.copy(self.address.key(path), self.address.key(aside), expected)
            # Not every server deletes on a condition, so check as late as possible.
            if expected is not None and self.stamp(path) != expected:
                raise Swapped(f"{path} was replaced by someone else")
            self._bucket.delete(self.address.key(path))
        return aside

    def clear_temporaries(self, folder: str, older_than_s: float, now_s: float) -> int:
        """Nothing to clear: drafts are local files without a name, and go with their process."""
        return 0

    def _place(self, path: str) -> str:
        return f"{self.address.bucket}/{self.address.key(path)}".rstrip("/")

    def _listed(self, folder: str, kind: pafs.FileType) -> list[str]:
        with translated(folder or self.address.bucket):
            selector = pafs.FileSelector(self._place(folder), allow_not_found=True)
            entries = self._lists.get_file_info(selector)
        if not entries and not self._bucket_seen:
            self._bucket.require()
        self._bucket_seen = True
        names = (entry.base_name for entry in entries if entry.type == kind)
        return sorted(name for name in names if not name.startswith("."))

    @contextlib.contextmanager
    def _placing(self, path: str) -> Iterator[None]:
        """Around the one request that makes an object appear."""
        self._faults(StorageFault.BEFORE_RENAME, path)
        yield
        self._faults(StorageFault.AFTER_RENAME, path)
        self._faults(StorageFault.BEFORE_DIR_FSYNC, path)
        self._faults(StorageFault.AFTER_WRITE, path)


class ObjectDraft:
    """A local temporary file that is put into the object store when it is committed."""

    def __init__(self, store: ObjectStore, path: str, file: BufferedRandom) -> None:
        self.path = path
        self.sink = file
        self._store = store

    def checkpoint(self) -> None:
        self._store._faults(StorageFault.MID_WRITE, self.path)

    def finish(self) -> None:
        self.sink.flush()
        self._store._faults(StorageFault.BEFORE_FSYNC, self.path)

    def sha256(self) -> str:
        self.sink.seek(0)
        return hashlib.file_digest(self.sink, "sha256").hexdigest()

    def commit(self, expected: str | None, companion: tuple[str, bytes] | None = None) -> None:
        store = self._store
        store._bucket.prove(store.address.key(f".guard-{secrets.token_hex(4)}"))
        if store.stamp(self.path) != expected:
            raise Swapped(f"{self.path} was replaced by someone else")
        with contextlib.ExitStack() as stack:
            if companion is not None:
                stack.enter_context(self._companion(*companion))
            self.sink.seek(0)
            with store._placing(self.path):
                store._bucket.replace(store.address.key(self.path), self.sink, expected)

    @contextlib.contextmanager
    def _companion(self, path: str, data: bytes) -> Iterator[None]:
        """Puts the companion; restores the previous one when its object could not be put."""
        store, key = self._store, self._store.address.key(path)
        before = store.stamp(path)
        old = store.read(path) if before is not None else None
        with store._placing(path):
            ours = store._bucket.replace(key, data, before)
        try:
            yield
        except Swapped:
            if old is not None:
                with contextlib.suppress(Swapped):
                    store._bucket.replace(key, old, ours)
            raise


def _temporary() -> BufferedRandom:
    try:
        return tempfile.TemporaryFile(prefix="collector-draft-")
    except OSError as error:
        raise Unavailable(f"a draft has nowhere to wait: {error.strerror or error}") from error


@functools.lru_cache(maxsize=16)
def _filesystem(endpoint: str | None, region: str) -> pafs.S3FileSystem:
    """One client a server and process."""
    server = urlsplit(endpoint or "")
    return pafs.S3FileSystem(
        endpoint_override=server.netloc or None,
        scheme=server.scheme or "https",
        region=region,
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )
