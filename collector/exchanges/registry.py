"""Which exchanges there are, and the way to one. Importing this imports no exchange library."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from collector.exchanges.ccxt_catalog import ccxt_ids
from collector.exchanges.ccxt_package import hold_back_exchanges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.clock import Clock
    from collector.exchanges.port import Exchange, Permit
    from collector.secrets import Credentials

_CLOSE_ENOUGH = 0.6
_SUGGESTIONS = 3


def known_exchanges() -> tuple[str, ...]:
    """Every exchange id that can be opened, in order."""
    return tuple(sorted(ccxt_ids()))


def near_matches(name: str) -> tuple[str, ...]:
    """Known ids that look like `name`, the likeliest first."""
    found = difflib.get_close_matches(
        name.strip().lower(), known_exchanges(), n=_SUGGESTIONS, cutoff=_CLOSE_ENOUGH
    )
    return tuple(found)


def open_exchange(
    exchange_id: str,
    permit: Permit,
    *,
    urls: Mapping[str, str],
    clock: Clock,
    timeout_ms: int | None = None,
    key: Credentials | None = None,
) -> Exchange:
    """An exchange that asks `permit` before every request. Sends nothing yet.

    The first call of a process imports ccxt, which takes a moment and needs no event loop:
    `await asyncio.to_thread(open_exchange, ...)` keeps a loop alive meanwhile. Raises ConfigError
    for an unknown id, naming near matches, and for an address that cannot be used.
    """
    hold_back_exchanges()
    from collector.exchanges.ccxt_exchange import TIMEOUT_MS, CcxtExchange

    patience_ms = TIMEOUT_MS if timeout_ms is None else timeout_ms
    return CcxtExchange(
        exchange_id, permit, urls=urls, clock=clock, timeout_ms=patience_ms, key=key
    )
