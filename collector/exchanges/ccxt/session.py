"""The HTTP session that ccxt gets: one token, at most one request, never to another host.

aiohttp by itself sends an idempotent request again when a kept-alive connection turns out to be
dropped, and follows redirects: below ccxt's throttle, so that one token became two requests. A
client middleware stands under both, on public interface but for one attribute (`Room`). It buys the
errand's token when its first request is about to leave and refuses any further one; and it renames
the errors that aiohttp would resend on, so that the job receives the dropped connection as an error
and decides.

Where a connection has to be opened first, the handshakes may outlast the token: a request that
would leave late buys another, with the connection in hand. (A connection before every token would
leave dozens of them open and idle while their requests wait for the budget.)

Time-outs are kept here as well, from the token on: ccxt's would count the wait for it, and mistake
a spent budget for an exchange that does not answer.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

from collector.errors import ConfigError
from collector.exchanges.ccxt.visit import Reply, current_errand

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
    from aiohttp.connector import Connection

    from collector.clock import Clock

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
MOST_BYTES = 64 * 2**20
"""How much of an exchange's answers, decoded, may be in memory at one time."""


class RequestRefused(aiohttp.ClientConnectionError):
    """A request without a token of its own was about to leave."""


class ConnectionLost(aiohttp.ClientConnectionError):
    """The connection broke before an answer. Unlike its cause, aiohttp does not resend on it."""


class AnswerTooLarge(aiohttp.ClientPayloadError):
    """An answer did not end within the bytes that there is room for."""


def tls_of(address: str | None, authorities: str) -> ssl.SSLContext | bool:
    """How connections are encrypted: trusting the authorities in a file.

    Where all requests go to an `address` without TLS, as any other is refused, aiohttp's own.
    """
    return True if address and address.startswith("http://") else _tls_context(authorities)


@cache
def _tls_context(authorities: str) -> ssl.SSLContext:
    """One for all exchanges: reading them takes 25 ms."""
    return ssl.create_default_context(cafile=authorities)


class PunctualConnector(aiohttp.TCPConnector):
    """Hands out a connection to requests that may leave at this moment."""

    def __init__(self, tls: ssl.SSLContext | bool, clock: Clock) -> None:
        # No limit on connections: a request that waits for one would leave long after its token.
        super().__init__(ssl=tls, limit=0)
        self._own_clock = clock

    async def connect(
        self, req: ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        errand = current_errand()
        try:
            if errand is not None:
                await errand.be_punctual(self._own_clock.monotonic())
        except BaseException:
            connection.release()  # nothing was sent on it: the next request may have it
            raise
        return connection


def open_session(
    tls: ssl.SSLContext | bool, address: str | None, clock: Clock, timeout_s: float
) -> aiohttp.ClientSession:
    """A session for one exchange. With an `address`, requests to anywhere else are refused."""
    connector = PunctualConnector(tls, clock)
    guard = one_request_a_token(address, timeout_s, clock)
    return aiohttp.ClientSession(connector=connector, middlewares=(guard,))


def one_request_a_token(
    address: str | None, timeout_s: float, clock: Clock
) -> ClientMiddlewareType:
    """The last check before the wire. Its answers come with their bodies."""
    origin = None if address is None else URL(address).origin()
    turns, room = Turns(), Room()

    async def guard(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        errand = current_errand()
        if errand is None or not errand.leave():
            raise RequestRefused(f"no token for {request.method} {request.url}")
        if origin is not None and request.url.origin() != origin:
            raise ConfigError(
                f"{errand.call.exchange_id}: a request to {request.url.host} was stopped, because "
                f"COLLECTOR_EXCHANGE_URLS sends this exchange's requests to {origin}"
            )
        # Bought here and not in ccxt's throttle: the token expires, and between the two ccxt signs,
        # builds and queues the request while others use the loop.
        await errand.buy()
        try:
            async with asyncio.timeout(timeout_s):
                response = await send(request)
                errand.arrived_at = clock.monotonic()
                # Kept now: the body may never come, and a 429 must not be lost with it.
                errand.reply = Reply(response.status, lower_case(response.headers))
                if response.status in _REDIRECTS:
                    response.close()
                    target = response.headers.get("Location", "nowhere")
                    raise RequestRefused(f"a redirect to {target} was not followed")
                async with room.read(response):
                    await turns.mine()
        except aiohttp.ClientConnectorError:
            raise  # never connected; aiohttp does not resend these
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            raise ConnectionLost(f"the connection was dropped: {error}") from error
        return response

    return guard


class Room:
    """The memory for answers of one exchange: a few bytes on the wire may decode to gigabytes."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = self._free = most

    @asynccontextmanager
    async def read(self, response: ClientResponse) -> AsyncIterator[None]:
        """Reads the body. Inside, it takes up room; after that its reader parses and drops it."""
        pieces: list[bytes] = []
        size = 0
        try:
            async for piece in response.content.iter_any():
                size += len(piece)
                self._free -= len(piece)
                if self._free < 0:
                    raise AnswerTooLarge(f"more than {self._most:,} bytes of answers")
                pieces.append(piece)
            response._body = b"".join(pieces)  # What aiohttp's own read() would set.
            pieces.clear()
            await response.read()
            yield
        except BaseException:
            response.close()
            raise
        finally:
            self._free += size


def lower_case(headers: Any) -> dict[str, str]:
    """Headers under lower-case names."""
    return {str(name).lower(): str(value) for name, value in headers.items()}


class Turns:
    """Lets one task continue in each round of the event loop, in the order they came.

    Reading a page takes milliseconds in which the event loop does nothing else. Thirty pages in a
    row would hold up a request that has its token for a tenth of a second, and it would arrive that
    late. So answers that came together are read with everything else in between.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._going_round = False

    async def mine(self) -> None:
        """Returns when it is this task's turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._going_round:
            self._going_round = True
            loop.call_soon(self._next)
        await turn

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._going_round = False
