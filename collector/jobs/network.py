"""Networks of trade history among the jobs: they stand where exchanges do, and are none.

A network has no connector, so its jobs need no tokens and are never blocked. They are leased under
a name that no exchange can have.
"""

from __future__ import annotations

_PREFIX = "_history/"
MOST_JOBS = 1
"""Jobs of one network that run at a time: its files have one writer."""


def place_of(network: str) -> str:
    """What stands in a job's `exchange_id` for a network."""
    return f"{_PREFIX}{network}"


def network_of(exchange_id: str) -> str | None:
    """The network whose job this is; None for a job of an exchange."""
    return exchange_id.removeprefix(_PREFIX) if exchange_id.startswith(_PREFIX) else None
