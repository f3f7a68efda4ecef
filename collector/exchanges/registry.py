"""Which exchanges exist, which provider serves each, and how to open one.

Importing this imports no exchange library, and neither does listing names.
"""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from collector.errors import ConfigError, SessionNotHeld
from collector.exchanges.provider import Access, Provider
from collector.market.near import did_you_mean, near

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock
    from collector.exchanges.exclusive import SessionRight
    from collector.exchanges.port import Exchange, Permit
    from collector.exchanges.quirks.record import Quirks
    from collector.secrets import Credentials

PROVIDERS = (
    "collector.simulated.provider",
    "collector.exchanges.ccxt.provider",
    "collector.exchanges.fxcm.provider",
)
"""Modules with a `PROVIDER`, by name because some of them stand above this room. No id is in two
of them."""


@cache
def _by_id() -> Mapping[str, Provider]:
    found: dict[str, Provider] = {}
    for module in PROVIDERS:
        provider: Provider = importlib.import_module(module).PROVIDER
        found |= dict.fromkeys(provider.ids(), provider)
    return found


def known_exchanges() -> tuple[str, ...]:
    """Every exchange id that can be opened, in order."""
    return tuple(sorted(_by_id()))


def near_matches(name: str) -> tuple[str, ...]:
    """Known ids that look like `name`, the likeliest first."""
    return near(name, _by_id())


def provider_of(exchange_id: str) -> Provider:
    """The provider of this exchange. Raises ConfigError for an unknown id, naming near matches."""
    provider = _by_id().get(exchange_id)
    if provider is None:
        hint = did_you_mean(exchange_id, _by_id())
        raise ConfigError(f"there is no exchange called {exchange_id!r}{hint}")
    return provider


def is_exclusive(exchange_id: str) -> bool:
    """Whether the exchange's account allows one login only: then a single worker opens it."""
    provider = _by_id().get(exchange_id)
    return provider is not None and provider.exclusive_session


def polls_bars(exchange_id: str) -> bool:
    """Whether its new bars are polled at the cadence of its price stream, where one runs."""
    provider = _by_id().get(exchange_id)
    return provider is not None and provider.polls_bars


def quirks_for(exchange_id: str) -> Quirks:
    """The exchange's limits and peculiarities. Raises ConfigError for an unknown id.

    An exchange without a record needs an import of ccxt, which takes a while.
    """
    return provider_of(exchange_id).quirks(exchange_id)


def open_exchange(
    exchange_id: str,
    permit: Permit,
    *,
    urls: Mapping[str, str],
    clock: Clock,
    timeout_ms: int | None = None,
    key: Credentials | None = None,
    home: Path | None = None,
    session: SessionRight | None = None,
    section: object = None,
) -> Exchange:
    """An exchange that calls `permit` before every request. Sends nothing yet.

    The first call of a process imports ccxt, which takes a while and needs no event loop: `await
    asyncio.to_thread(open_exchange, ...)` keeps a loop alive meanwhile. Raises ConfigError for an
    unknown id, naming near matches, and for an address that cannot be used. SessionNotHeld for an
    account that allows one login when there is no `session`: the right to that login.
    """
    provider = provider_of(exchange_id)
    if provider.exclusive_session and session is None:
        raise SessionNotHeld(
            f"{exchange_id} allows one login: only the worker that holds its session opens it"
        )
    access = Access(clock, urls, timeout_ms, key, home or Path(), session, section)
    return provider.open(exchange_id, permit, access)
