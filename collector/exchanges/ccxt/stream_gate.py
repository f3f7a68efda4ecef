"""ccxt's websockets with a gate in them: no request without a token, no other host.

`streaming(exchange_id)` is ccxt's own class of an exchange with websockets, with `StreamGate` in
front of it. Some exchanges need a REST request to learn where to connect; it buys a token like any
other.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ccxt.async_support.base.exchange import BaseExchange
from yarl import URL

from collector.errors import BadRequest, ConfigError
from collector.exchanges.ccxt.catalog import streaming_class, streaming_ids
from collector.exchanges.ccxt.errors import sorted_error
from collector.exchanges.handshake import with_token
from collector.exchanges.port import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.exchanges.ccxt.request_hook import Desk


class StreamGate(BaseExchange):  # type: ignore[misc] # ccxt has no types
    """Stands before an exchange's own class; see `streaming`."""

    desk: Desk

    async def fetch2(self, path: str, *rest: Any, **more: Any) -> Any:
        """One request with a token, and an error in Collector's words."""
        desk = self.desk
        call = Call(desk.quirks.exchange_id, path)
        ask = partial(self._asked, partial(super().fetch2, path, *rest, **more))
        return await with_token(desk.outcomes.permit, call, desk.clock, ask)

    async def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return await ask()
        except Exception as error:
            raise sorted_error(error, self.desk.quirks, None, self.desk.clock) from error

    async def throttle(self, cost: Any = None) -> None:
        """Nothing: `fetch2` has bought the token."""

    def client(self, url: str) -> Any:
        """The connection to an address, which has to be the one that was set, if one was."""
        address = self.desk.address
        if address is not None:
            allowed, asked = URL(address), URL(url)
            if (asked.host, asked.port) != (allowed.host, allowed.port):
                raise ConfigError(
                    f"{self.id}: a websocket to {asked.host} was stopped, because "
                    f"COLLECTOR_EXCHANGE_URLS sends this exchange's requests to {address}"
                )
        return super().client(url)


@cache
def streaming(exchange_id: str) -> Any:
    """ccxt's class of an exchange with the gate in front of it. BadRequest when it has no
    websockets."""
    if exchange_id not in streaming_ids():
        raise BadRequest(f"{exchange_id} sends no live prices")
    return type(f"Streaming_{exchange_id}", (StreamGate, streaming_class(exchange_id)), {})
