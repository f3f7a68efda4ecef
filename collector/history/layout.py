"""Where a network's files lie, below the root of the lake.

    _history/{network}/ledger/     segments of the ledger, see segment.py
    _history/{network}/buckets/    saved buckets, see bucket_files.py

Files that never change end their name with a digest of their bytes, which is compared before
anything in them is believed.

Exchanges have no names that begin with an underscore, so code that lists exchanges skips this
folder.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from collector.history.refusal import Refused
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collector.store.port import Storage

SUFFIX = ".parquet"
_NETWORK = re.compile(r"[a-z0-9][a-z0-9_.\-]{0,63}")


def checked_network(network: str) -> str:
    """The network itself, which is also its folder. Refused unless it is a lower-case word."""
    if _NETWORK.fullmatch(network) is None:
        raise Refused(f"{network!r} is no network: a word in lower case, such as riemann")
    return network


def stored_networks(storage: Storage) -> tuple[str, ...]:
    """Every network that has files."""
    return tuple(name for name in storage.folders("_history") if _NETWORK.fullmatch(name))


def ledger_folder(network: str) -> str:
    return f"_history/{checked_network(network)}/ledger"


def buckets_folder(network: str) -> str:
    return f"_history/{checked_network(network)}/buckets"


def digest_of(data: bytes) -> str:
    return shortened(hashlib.sha256(data).hexdigest())


def shortened(sha256: str) -> str:
    return sha256[:12]


def check_digest(path: str, digest: str) -> None:
    """Raises Corrupt when the bytes are not those that were named."""
    if not path.endswith(f"-{digest}{SUFFIX}"):
        raise Corrupt(path, "its digest is another")
