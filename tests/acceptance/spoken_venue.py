"""`python -m tests.acceptance.spoken_venue kraken`: a venue in its own format, in its own process.

It prints its address, answers as tests/contract/dialects describe the venue, and notes when each
request arrived and what the venue counts for it. `/journal` tells. A process of its own, because
arrivals that are noted by a busy test come late.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

from aiohttp import web

from collector.clock import SystemClock
from tests.contract.ccxt_venue import Venue, recording, says, serving
from tests.contract.dialects import DIALECTS
from tests.contract.dialects.dialect import dated

if TYPE_CHECKING:
    from typing import Any

YEARS_MS = 3 * 365 * 86_400_000
KRAKEN_COINS = tuple(f"{first}{second}{second}" for first in "ABCD" for second in "EFGH")
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
        return await says(200, self._body(request, name, now_ms), headers=dated(now_ms))(request)

    def _body(self, request: web.Request, name: str, now_ms: int) -> Any:
        dialect = self._dialect
        if name != dialect.bars_file:
            body = recording(dialect.exchange_id, name)
            return _with_more_coins(body) if name == "AssetPairs" else body
        body = dialect.page(dialect.answer(request, self._first_ms, now_ms))
        if dialect.exchange_id == "kraken":
            body["result"][request.query["pair"]] = body["result"].pop("XXBTZUSD")
        return body


def _with_more_coins(pairs: Any) -> Any:
    """Kraken has one page of each series, and the recording one pair: too little work."""
    bitcoin = json.dumps(pairs["result"]["XXBTZUSD"])
    for coin in KRAKEN_COINS:
        renamed = bitcoin.replace("XXBT", coin).replace("XBT", coin)
        pairs["result"][f"{coin}USD"] = json.loads(renamed)
    return pairs


async def serve(exchange_id: str) -> None:
    async with serving(Venue(exchange_id, always=Spoken(exchange_id))) as address:
        print(address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
