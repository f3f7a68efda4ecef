"""`python -m tests.acceptance.spoken_venue kraken`: a venue in its own format, in its own process.

It prints its address, answers as tests/contract/dialects describe the venue, and notes when each
request arrived and what the venue counts for it. `/journal` tells. In a process of its own, and
with bodies written in a thread: an arrival that waits for its note looks like a late request.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import TYPE_CHECKING

from aiohttp import web

from collector.clock import SystemClock
from tests.contract.ccxt_venue import Venue, recording, serving
from tests.contract.dialects import DIALECTS
from tests.contract.dialects.dialect import dated

if TYPE_CHECKING:
    from typing import Any

YEARS_MS = 3 * 365 * 86_400_000
COINS = tuple(f"{first}{second}{second}" for first in "ABCD" for second in "EFGH")
"""Further markets, like Bitcoin's: the recordings have too few to keep four workers busy."""
WEIGHTS = {"klines": 2, "exchangeInfo": 20}
"""Binance's own table, of its endpoints that are asked here; any other request counts one."""


class Spoken:
    """Every answer well-formed, none refused: what was too much stands in the journal."""

    def __init__(self, exchange_id: str) -> None:
        self._dialect = DIALECTS[exchange_id]
        self._first_ms = SystemClock().wall_ms() - YEARS_MS
        self._units: list[float] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        arrived_ms = time.monotonic() * 1000
        if request.path == "/journal":
            return web.json_response(self._units)
        name = self._dialect.recording_for(request)
        self._units += [arrived_ms] * WEIGHTS.get(name, 1)
        now_ms = SystemClock().wall_ms()
        body = await asyncio.to_thread(lambda: json.dumps(self._body(request, name, now_ms)))
        return web.Response(text=body, content_type="application/json", headers=dated(now_ms))

    def _body(self, request: web.Request, name: str, now_ms: int) -> Any:
        dialect = self._dialect
        if name != dialect.bars_file:
            return _with_more_coins(name, recording(dialect.exchange_id, name))
        body = dialect.page(dialect.answer(request, self._first_ms, now_ms))
        if dialect.exchange_id == "kraken":
            body["result"][request.query["pair"]] = body["result"].pop("XXBTZUSD")
        return body


def _with_more_coins(name: str, body: Any) -> Any:
    """The recorded markets and those of `COINS`; any other body as it is."""
    if name == "AssetPairs":
        pairs = body["result"]
        pairs |= {f"{coin}USD": _renamed(pairs["XXBTZUSD"], "X?XBT", coin) for coin in COINS}
    elif name == "exchangeInfo":
        body["symbols"] += [_renamed(body["symbols"][0], "BTC", coin) for coin in COINS]
    elif name == "instruments-info.spot":
        listed = body["result"]["list"]
        listed += [_renamed(listed[0], "BTC", coin) for coin in COINS]
    return body


def _renamed(bitcoin: Any, name: str, coin: str) -> Any:
    return json.loads(re.sub(name, coin, json.dumps(bitcoin)))


async def serve(exchange_id: str) -> None:
    sys.setswitchinterval(0.001)
    async with serving(Venue(exchange_id, always=Spoken(exchange_id))) as address:
        print(address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
