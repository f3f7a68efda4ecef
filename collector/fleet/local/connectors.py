"""Connectors in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.fleet.interface import Made
from collector.operations import connected_jobs, connectors
from collector.operations.connector_change import change_connector
from collector.operations.shown.connector import shown_connector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector
    from collector.fleet.interface import Shown
    from collector.mongo.client import Database


@dataclass(frozen=True, slots=True)
class LocalConnectors:
    database: Database

    @property
    def _registry(self) -> ConnectorRegistry:
        return ConnectorRegistry(self.database)

    async def all(self) -> list[Shown]:
        return [self._shown(each) for each in await self._registry.all()]

    async def get(self, exchange_id: str) -> Shown:
        return self._shown(await self._registry.get(exchange_id))

    async def ensure(self, exchange_id: str, figures: Mapping[str, Any], notes: str | None) -> Made:
        ensured = await connectors.ensure(self.database, exchange_id, figures, notes)
        return Made(self._shown(ensured.connector), ensured.made)

    async def change(self, exchange_id: str, changes: Mapping[str, Any]) -> Shown:
        return self._shown(await change_connector(self.database, exchange_id, changes))

    async def pause(self, exchange_id: str, until_ms: int | None) -> Shown:
        return self._shown(await connectors.pause(self.database, exchange_id, until_ms))

    async def resume(self, exchange_id: str) -> Shown:
        return self._shown(await self._registry.resume(exchange_id))

    async def unblock(self, exchange_id: str) -> Shown:
        return self._shown(await self._registry.unblock(exchange_id))

    async def remove(self, exchange_id: str, *, cascade: bool) -> Shown:
        connector, gone = await connected_jobs.remove_connector(
            self.database, exchange_id, cascade=cascade
        )
        return {**self._shown(connector), "jobs_removed": gone}

    def _shown(self, connector: Connector) -> Shown:
        return shown_connector(connector, self.database.server_clock.now_ms())
