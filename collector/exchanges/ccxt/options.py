"""What every ccxt instance is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.durations import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.exchanges.quirks import Quirks
    from collector.secrets import Credentials

_NEVER_MS = DAY_MS


def settings_for(quirks: Quirks, key: Credentials | None = None) -> Mapping[str, Any]:
    """ccxt's settings: its throttle in use, none of its own retries, only the markets needed."""
    options: dict[str, Any] = {"maxRetriesOnFailure": 0}
    if quirks.market_options:
        options["fetchMarkets"] = dict(quirks.market_options)
    if quirks.currency_options:
        options["fetchCurrencies"] = dict(quirks.currency_options)
    login = {"apiKey": key.key, "secret": key.secret, "password": key.password} if key else {}
    return {
        **login,
        "enableRateLimit": True,
        "timeout": _NEVER_MS,  # the session keeps the time
        "options": options,
        # They are not used, and a list of markets is tens of megabytes.
        "enableLastHttpResponse": False,
        "enableLastJsonResponse": False,
        "enableLastResponseHeaders": False,
    }
