"""The location of a lake: a folder, or `s3://bucket/prefix` in an object store.

An address in an object store holds everything needed to reach it, in the form that pyarrow reads
too: `s3://bucket/prefix?endpoint_override=127.0.0.1:9000&scheme=http`. So one text goes from the
settings to every process. Keys are never part of it: they come from AWS_*, as usual.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from collector.errors import ConfigError

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_OPTIONS = {"endpoint_override", "scheme", "region"}


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """A prefix in a bucket.

    endpoint  the address of an S3-compatible server; None for Amazon's own region    None: from
    AWS_REGION and the like
    """

    bucket: str
    prefix: str
    endpoint: str | None
    region: str | None

    @classmethod
    def parse(cls, text: str) -> ObjectAddress:
        parts = urlsplit(text)
        options = dict(parse_qsl(parts.query))
        if "@" in parts.netloc:
            raise ConfigError("keys do not belong into an s3:// address: set AWS_ACCESS_KEY_ID")
        if not _BUCKET.fullmatch(parts.netloc) or not _OPTIONS.issuperset(options):
            raise ConfigError(f"{text} is not s3://bucket/prefix")
        prefix = parts.path.strip("/")
        if any(name in ("", ".", "..") for name in prefix.split("/")) and prefix:
            raise ConfigError(f"{text}: the prefix has an empty or dotted folder in it")
        host = options.get("endpoint_override")
        endpoint = f"{options.get('scheme', 'https')}://{host}" if host else None
        return cls(parts.netloc, prefix, endpoint, options.get("region"))

    def key(self, path: str) -> str:
        """The name in the bucket of what the store calls `path`."""
        return "/".join(name for name in (self.prefix, path) if name)


def in_object_store(root: str | os.PathLike[str]) -> bool:
    return os.fspath(root).startswith("s3://")


def absolute(root: str | os.PathLike[str]) -> str:
    """The root in a form that works in any process of this machine, in any folder."""
    return os.fspath(root) if in_object_store(root) else str(Path(root).absolute())


def with_endpoint(root: str, endpoint: str | None) -> str:
    """An address in an object store, at that server unless it names one itself."""
    if not endpoint or not in_object_store(root) or "endpoint_override=" in root:
        return root
    scheme, _, host = endpoint.rpartition("://")
    if scheme not in ("", "http", "https") or not re.fullmatch(r"[\w.\[\]:-]+/?", host):
        raise ConfigError("s3_endpoint: give scheme, host and port: http://127.0.0.1:9000")
    options = urlencode({"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"})
    return f"{root}{'&' if '?' in root else '?'}{options}"
