"""What a provider of exchanges declares.

A provider is one way to reach exchanges: a library, an SDK, a file archive. ccxt provides more than
a hundred exchanges, most others exactly one. Each lives in a folder of its own whose `provider.py`
names a `PROVIDER`, and has one line in `registry.py`; no other code refers to it.

To add one, write these:

    ids()        every exchange id it serves, without importing what is slow to import
    quirks(id)   the exchange's limits and page sizes, and what else makes it differ
    calendar(..) when a market is open; an exchange that closes also has a line in
                 `market/calendar/lookup.py`, for reading stored bars
    lacking(..)  what this machine lacks to open the exchange
    open(...)    an adapter behind `port.Exchange` that calls its permit before every request

and declare whether its session is exclusive: an account that can be logged in only once. Then one
worker of the fleet holds the session at a time, and the API and the command line never open it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock
    from collector.exchanges.exclusive import SessionRight
    from collector.exchanges.port import Exchange, Permit
    from collector.exchanges.quirks.record import Quirks
    from collector.market.calendar.calendar import Calendar
    from collector.secrets import Credentials


@dataclass(frozen=True, slots=True)
class Access:
    """How an exchange is reached: other addresses, whose clock, how patiently, with which key.

    `home` is where a provider may keep files of its own, `section` the exchange's own section of
    the settings, where it has one. `session` is the right to an exclusive
    session, None in a process that has none and therefore must not log in.
    """

    clock: Clock
    urls: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    key: Credentials | None = None
    home: Path = Path()
    session: SessionRight | None = None
    section: object = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)


class Provider(Protocol):
    """One way to reach exchanges. Importing its module is cheap; `open` may not be."""

    @property
    def exclusive_session(self) -> bool:
        """Whether only one process in the fleet may have an exchange of it open."""

    @property
    def polls_bars(self) -> bool:
        """Whether new bars are polled at the cadence of the price stream, where one runs."""

    def ids(self) -> frozenset[str]:
        """Every exchange id it serves."""

    def quirks(self, exchange_id: str) -> Quirks:
        """The exchange's limits and peculiarities."""

    def calendar(self, exchange_id: str, symbol: str) -> Calendar:
        """When a market is open."""

    async def lacking(self, exchange_id: str, access: Access) -> str | None:
        """What keeps this machine from opening the exchange; None when nothing does."""

    def open(self, exchange_id: str, permit: Permit, access: Access) -> Exchange:
        """An adapter that calls `permit` before every request. Sends nothing yet."""
