"""Connectors by REST."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from collector.fleet.interface import Made
from collector.fleet.remote.dates import with_dates
from collector.operations.connector_change import checked
from collector.operations.connectors import check_exchange
from collector.remote.api_client import PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.fleet.interface import Shown
    from collector.remote.api_client import ApiClient


@dataclass(frozen=True, slots=True)
class RemoteConnectors:
    api: ApiClient

    async def all(self) -> list[Shown]:
        found, _ = await self.api.items("connectors", PAGE)
        return [with_dates(each) for each in found]

    async def get(self, exchange_id: str) -> Shown:
        return await self._asked("GET", _at(exchange_id))

    async def ensure(self, exchange_id: str, figures: Mapping[str, Any], notes: str | None) -> Made:
        check_exchange(exchange_id)
        given = {**figures, "notes": notes}
        body = {name: value for name, value in given.items() if value is not None}
        answer = await self.api.ask("POST", "connectors", {"exchange_id": exchange_id, **body})
        return Made(with_dates(answer.body), answer.status == 201)

    async def change(self, exchange_id: str, changes: Mapping[str, Any]) -> Shown:
        checked(changes)  # In the words that they are refused with here.
        return await self._asked("PATCH", _at(exchange_id), dict(changes))

    async def pause(self, exchange_id: str, until_ms: int | None) -> Shown:
        return await self._asked("POST", f"{_at(exchange_id)}/pause", {"until": until_ms})

    async def resume(self, exchange_id: str) -> Shown:
        return await self._asked("POST", f"{_at(exchange_id)}/resume")

    async def unblock(self, exchange_id: str) -> Shown:
        return await self._asked("POST", f"{_at(exchange_id)}/unblock")

    async def remove(self, exchange_id: str, *, cascade: bool) -> Shown:
        asked = {"cascade": str(cascade).lower()}
        answer = await self.api.ask("DELETE", _at(exchange_id), params=asked)
        shown: Shown = with_dates(answer.body)
        return shown

    async def _asked(self, method: str, path: str, body: Any = None) -> Shown:
        shown: Shown = with_dates((await self.api.ask(method, path, body)).body)
        return shown


def _at(exchange_id: str) -> str:
    return f"connectors/{quote(exchange_id, safe='')}"
