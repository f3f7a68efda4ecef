"""`python -m tests.support.venue_process kraken`: a venue in its own format, in its own process.

It prints its address, answers as tests/support/dialects describe the venue, and notes when each
request arrived and what the venue counts for it. `/journal` returns them. Bodies are written by
another process: what waits in line for a page to be finished would look like a request that came
late.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import re
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from collector.clock import SystemClock
from tests.support.ccxt_venue import Venue, recording, serving
from tests.support.dialects import DIALECTS
from tests.support.dialects.dialect import dated

if TYPE_CHECKING:
    from typing import Any

YEARS_MS = 3 * 365 * 86_400_000
COINS = tuple(f"{first}{second}{second}" for first in "ABCD" for second in "EFGH")
"""Further markets, like Bitcoin's: the recordings have too few to keep four workers busy."""
WEIGHTS = {"klines": 2, "exchangeInfo": 20}
"""Binance's own table, of the endpoints used here; any other request counts one."""


_PR_SET_PDEATHSIG = 1


class Spoken:
    """Every answer well-formed, none refused: what was too much stands in the journal."""

    def __init__(self, exchange_id: str, clerk: ProcessPoolExecutor) -> None:
        self._exchange_id = exchange_id
        self._clerk = clerk
        self._units: list[float] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        arrived_ms = time.monotonic() * 1000
        if request.path == "/journal":
            return web.json_response(self._units)
        name = DIALECTS[self._exchange_id].recording_for(request)
        self._units += [arrived_ms] * WEIGHTS.get(name, 1)
        now_ms = SystemClock().wall_ms()
        body = await asyncio.get_running_loop().run_in_executor(
            self._clerk, written, self._exchange_id, request.path_qs, now_ms
        )
        return web.Response(text=body, content_type="application/json", headers=dated(now_ms))


def written(exchange_id: str, path: str, now_ms: int) -> str:
    """The body of an answer."""
    dialect, request = DIALECTS[exchange_id], make_mocked_request("GET", path)
    name = dialect.recording_for(request)
    if name != dialect.bars_file:
        return markets(exchange_id, name)
    body = dialect.page(dialect.answer(request, now_ms - YEARS_MS, now_ms))
    if exchange_id == "kraken":
        body["result"][request.query["pair"]] = body["result"].pop("XXBTZUSD")
    return json.dumps(body)


@cache
def markets(exchange_id: str, name: str) -> str:
    """A recorded answer; a list of markets with those of `COINS`."""
    body = recording(exchange_id, name)
    if name == "AssetPairs":
        pairs = body["result"]
        pairs |= {f"{coin}USD": _renamed(pairs["XXBTZUSD"], "X?XBT", coin) for coin in COINS}
    elif name == "exchangeInfo":
        body["symbols"] += [_renamed(body["symbols"][0], "BTC", coin) for coin in COINS]
    elif name == "instruments-info.spot":
        listed = body["result"]["list"]
        listed += [_renamed(listed[0], "BTC", coin) for coin in COINS]
    return json.dumps(body)


def _renamed(bitcoin: Any, name: str, coin: str) -> Any:
    return json.loads(re.sub(name, coin, json.dumps(bitcoin)))


def _die_with_the_venue() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


async def serve(exchange_id: str) -> None:
    with ProcessPoolExecutor(1, initializer=_die_with_the_venue) as clerk:
        clerk.submit(written, exchange_id, "/", 0).exception()  # it is up before anybody asks
        async with serving(Venue(exchange_id, always=Spoken(exchange_id, clerk))) as address:
            print(address, flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
