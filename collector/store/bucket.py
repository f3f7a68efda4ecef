"""Single requests to a bucket, conditional on the known version of an object where needed.

pyarrow offers neither (docs/adr/0015). Its streams upload what they have when they are dropped, so
that half a write becomes an object, and they read with two requests, between which an object may
disappear. And without conditions a compaction that was frozen would put its file over a newer one,
and a reader would receive bytes of two files.
"""

from __future__ import annotations

import functools
import os
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore.config import Config

from collector.errors import StoreError
from collector.store.object_errors import translated
from collector.store.port import Swapped, Unavailable, Vanished

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

CONNECT_S, ANSWER_S = 5, 30
"""How long to wait for a connection, and for an answer, before a request counts as lost."""
ATTEMPTS = 3

_PIECE = 1 << 20
_TOKEN = "collector-write"


@dataclass(frozen=True, slots=True)
class Found:
    """An object as it is now. `etag` changes whenever its bytes do."""

    etag: str
    size: int
    token: str | None
    """Set by the write that created it, when that was conditional."""


class ObjectBucket:
    """One bucket. Every change is one request, which happens or does not. Any thread may call."""

    def __init__(self, name: str, endpoint: str | None, region: str) -> None:
        self._name = name
        self._client = botocore.session.get_session().create_client(
            "s3",
            endpoint_url=endpoint,
            region_name=region,
            config=Config(
                connect_timeout=CONNECT_S,
                read_timeout=ANSWER_S,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                max_pool_connections=64,
                # Not every S3-compatible server supports the newer checksums.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                s3={"addressing_style": "path" if endpoint else "auto"},
            ),
        )
        self._lock = threading.Lock()
        self._proved = False

    def find(self, key: str) -> Found | None:
        """None when there is no such object."""
        try:
            with translated(key):
                head = self._client.head_object(Bucket=self._name, Key=key)
        except Vanished:
            return None
        return Found(head["ETag"], head["ContentLength"], head["Metadata"].get(_TOKEN))

    def read(self, key: str) -> bytes:
        """The whole object. Raises Vanished when there is none."""
        with translated(key):
            data: bytes = self._client.get_object(Bucket=self._name, Key=key)["Body"].read()
        return data

    def pieces(self, key: str) -> Iterator[bytes]:
        """The whole object, a piece at a time. Raises Vanished when there is none."""
        with translated(key):
            answer = self._client.get_object(Bucket=self._name, Key=key)
            yield from answer["Body"].iter_chunks(_PIECE)

    def get(self, key: str, etag: str, first: int, end: int) -> bytes:
        """Bytes `[first, end)` of exactly that object. Raises Vanished when it is another one."""
        asked = f"bytes={first}-{end - 1}"
        try:
            with translated(key):
                answer = self._client.get_object(
                    Bucket=self._name, Key=key, IfMatch=etag, Range=asked
                )
                data: bytes = answer["Body"].read()
        except Swapped as error:
            raise Vanished(f"{key} was replaced while it was read") from error
        return data

    def put(self, key: str, data: bytes) -> None:
        """Puts the object, replacing any other of that name."""
        with translated(key):
            self._client.put_object(Bucket=self._name, Key=key, Body=data)

    def replace(self, key: str, body: bytes | IO[bytes], etag: str | None) -> str:
        """Replaces the object that `etag` names; None means no object. Returns the new tag.

        Raises Swapped, with nothing changed, when another one is there.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        token = secrets.token_hex(8)
        try:
            with translated(key):
                answer = self._client.put_object(
                    Bucket=self._name,
                    Key=key,
                    Body=body,
                    Metadata={_TOKEN: token},
                    **condition,
                )
            return str(answer["ETag"])
        except (Swapped, Vanished, Unavailable) as error:
            # When an answer was lost the client repeats the request, and then finds its own object.
            now = self.find(key)
            if now is not None and now.token == token:
                return now.etag
            if isinstance(error, Vanished):
                raise Swapped(f"{key} was removed by someone else") from error
            raise

    def copy(self, key: str, to: str, etag: str | None = None) -> None:
        """Copies the object, or only that of this tag. Raises Swapped when another one is there."""
        condition = {} if etag is None else {"CopySourceIfMatch": etag}
        with translated(key):
            source = {"Bucket": self._name, "Key": key}
            self._client.copy_object(Bucket=self._name, Key=to, CopySource=source, **condition)

    def delete(self, key: str) -> None:
        """Removes the object. One that is gone already is fine."""
        with translated(key):
            self._client.delete_object(Bucket=self._name, Key=key)

    def require(self) -> None:
        """Raises StoreError when there is no such bucket, which must not look like an empty one."""
        try:
            with translated(self._name):
                self._client.head_bucket(Bucket=self._name)
        except Vanished as error:
            raise StoreError(f"there is no bucket {self._name}") from error

    def prove(self, key: str) -> None:
        """Raises StoreError when this server ignores conditions. Tried once, on a key of its own.

        A server that ignores them answers 200, and compactions would silently undo one another.
        """
        with self._lock:
            if self._proved:
                return
            try:
                self._must_refuse(key, '"0"')
                self.replace(key, b"", None)
                self._must_refuse(key, None)
            finally:
                self.delete(key)
            self._proved = True

    def _must_refuse(self, key: str, etag: str | None) -> None:
        try:
            self.replace(key, b"", etag)
        except Swapped:
            return
        raise StoreError(
            "this object store ignores If-Match or If-None-Match on PUT: a lake in it is not safe"
        )


@functools.lru_cache(maxsize=16)
def bucket_at(name: str, endpoint: str | None, region: str) -> ObjectBucket:
    """One client per bucket and process: creating one takes longer than a hundred requests."""
    return ObjectBucket(name, endpoint, region)


def default_region() -> str:
    """The region that environment and AWS's own files name; private servers have none."""
    found: Any = os.environ.get("AWS_REGION")
    found = found or botocore.session.get_session().get_config_variable("region")
    return str(found or "us-east-1")
