"""Where a network's files lie, below the root of the lake.

    _history/{network}/ledger/     segments of the ledger, see segment.py
    _history/{network}/buckets/    saved buckets, see bucket_files.py

Exchanges have no names that begin with an underscore, so code that lists exchanges skips this
folder.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from collector.history.refusal import Refused

if TYPE_CHECKING:
    from collector.store.port import Storage

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
