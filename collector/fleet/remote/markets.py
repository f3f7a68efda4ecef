"""Markets by REST, and the series that are kept of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.fleet.remote.dates import with_dates
from collector.operations.connectors import check_exchange

if TYPE_CHECKING:
    from collector.fleet.interface import Shown
    from collector.operations.streams import SeriesRequest
    from collector.remote.api_client import ApiClient

MOST_SYMBOLS = 20_000
SYMBOLS_AT_ONCE = 100
"""What one body may name."""


@dataclass(frozen=True, slots=True)
class RemoteMarkets:
    api: ApiClient

    async def page(
        self,
        exchange_id: str,
        *,
        search: str | None = None,
        active: bool | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Shown:
        wanted = None if active is None else str(active).lower()
        given = {"exchange_id": exchange_id, "search": search, "active": wanted, "cursor": cursor}
        return await self._listed("markets", given, limit)

    async def symbols(self, exchange_id: str) -> list[str]:
        found, _ = await self.api.items("markets", MOST_SYMBOLS, {"exchange_id": exchange_id})
        return [each["symbol"] for each in found]

    async def tickers(
        self, exchange_id: str, symbol: str | None, limit: int, cursor: str | None = None
    ) -> Shown:
        given = {"exchange_id": exchange_id, "symbol": symbol, "cursor": cursor}
        return await self._listed("tickers", given, limit)

    async def estimate(self, wanted: SeriesRequest) -> Shown:
        check_exchange(wanted.exchange_id)
        answers = [
            (await self.api.ask("POST", "streams/estimate", body, patient=True)).body
            for body in _bodies(wanted)
        ]
        return _together(answers)

    async def add(self, wanted: SeriesRequest) -> Shown:
        check_exchange(wanted.exchange_id)
        answers = [
            with_dates((await self.api.ask("POST", "streams", body, patient=True)).body)
            for body in _bodies(wanted)
        ]
        created = answers[0]["connector_created"]
        return {**_together(answers), "connector_created": created}

    async def _listed(self, path: str, given: dict[str, str | None], limit: int) -> Shown:
        asked = {name: value for name, value in given.items() if value is not None}
        page: Shown = await self.api.get(path, {**asked, "limit": str(limit)})
        return page


def _bodies(wanted: SeriesRequest) -> list[dict[str, Any]]:
    """One for every so many symbols."""
    symbols = list(wanted.symbols)
    body = {
        "exchange_id": wanted.exchange_id,
        "timeframes": list(wanted.timeframes),
        "since": wanted.since,
        "backfill": wanted.backfill,
        "make_connector": True,
    }
    return [
        {**body, "symbols": symbols[start : start + SYMBOLS_AT_ONCE]}
        for start in range(0, len(symbols), SYMBOLS_AT_ONCE)
    ]


def _together(answers: list[Shown]) -> Shown:
    """Lists are joined and counts added; of the rest the last one holds."""
    whole, *others = answers
    for other in others:
        whole = {name: _joined(whole[name], value) for name, value in other.items()}
    return whole


def _joined(before: Any, value: Any) -> Any:
    if isinstance(value, bool):
        return before and value
    return before + value if isinstance(value, list | int) else value
