"""A read-only key: its permissions are requested once, before its first use.

Two venues report them through ccxt. For the others they are unknown, which is logged.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.errors import BadRequest, ExchangeUnavailable, KeyRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = logs.get("collector.exchanges")


def _binance_rights(answer: Any) -> list[str] | None:
    if not isinstance(answer, dict) or not isinstance(answer.get("enableReading"), bool):
        return None
    harmless = {"enableReading", "enableFixReadOnly"}
    return [
        name
        for name, allowed in answer.items()
        if name.startswith(("enable", "permits")) and name not in harmless and allowed is not False
    ]


def _bybit_rights(answer: Any) -> list[str] | None:
    result = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(result, dict) or result.get("readOnly") not in (0, 1):
        return None
    granted = result.get("permissions")
    names = [name for name, each in granted.items() if each] if isinstance(granted, dict) else []
    return [] if result["readOnly"] == 1 else names or ["write"]


_BINANCE = ("sapi_get_account_apirestrictions", _binance_rights)
_TELLING: dict[str, tuple[str, Callable[[Any], list[str] | None]]] = {
    "binance": _BINANCE,
    "binanceusdm": _BINANCE,
    "binancecoinm": _BINANCE,
    "bybit": ("private_get_v5_user_query_api", _bybit_rights),
}


class KeyCheck:
    """Blocks use of the key until the venue has confirmed that it can only read."""

    def __init__(self, exchange_id: str, ask: Callable[[str], Awaitable[Any]]) -> None:
        """`ask` calls one of ccxt's methods by name, behind the permit."""
        self._exchange_id = exchange_id
        self._ask = ask
        self._asking = asyncio.Lock()
        self._passed = False
        self._refused_because: str | None = None

    async def passed(self) -> None:
        """Returns when the key may be used. KeyRefused is permanent; other errors may not be."""
        async with self._asking:
            if self._refused_because is None and not self._passed:
                await self._decide()
            if self._refused_because is not None:
                raise KeyRefused(
                    f"{self._exchange_id}: its key is refused, because "
                    f"{self._refused_because}; use a read-only one"
                )

    async def _decide(self) -> None:
        if self._exchange_id not in _TELLING:
            _log.warning("key_not_checked", exchange=self._exchange_id)
            self._passed = True
            return
        method, rights_in = _TELLING[self._exchange_id]
        try:
            rights = rights_in(await self._ask(method))
        except BadRequest:
            # Without the venue's message, here and below: it may quote what was sent.
            self._refused_because = "the venue does not accept it"
            return
        except ExchangeUnavailable as error:
            raise ExchangeUnavailable(
                f"{self._exchange_id}: the permissions of its key could not be read",
                retry_after_ms=error.retry_after_ms,
            ) from None
        if rights is None:
            raise ExchangeUnavailable(
                f"{self._exchange_id}: it did not report the permissions of its key"
            )
        if rights:
            self._refused_because = f"it can do more than read ({', '.join(sorted(rights))})"
            return
        self._passed = True
