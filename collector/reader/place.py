"""The default location of the lake, and the store of a location."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from collector.store.address import absolute, with_endpoint
from collector.store.store import Store

if TYPE_CHECKING:
    from collector.store.port import Storage

    Root = str | os.PathLike[str] | Storage | Store


def store_at(root: Root | None) -> Store:
    """The store of a folder, an `s3://bucket/prefix` or a storage; the default one for None."""
    where = default_root() if root is None else root
    if isinstance(where, str | os.PathLike):
        return _kept_store(absolute(where))
    return where if isinstance(where, Store) else Store(where)


def default_root() -> str:
    """The default location of candles: COLLECTOR_DATA, else `data` below COLLECTOR_HOME."""
    home = os.environ.get("COLLECTOR_HOME") or Path.home() / ".local" / "share" / "collector"
    root = os.environ.get("COLLECTOR_DATA") or str(Path(home) / "data")
    return with_endpoint(root, os.environ.get("COLLECTOR_S3_ENDPOINT"))


@functools.lru_cache(maxsize=16)
def _kept_store(root: str) -> Store:
    """One store per location, so that cached footers serve every reader of the process."""
    return Store(root)
