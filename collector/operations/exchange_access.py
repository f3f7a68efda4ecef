"""The one way to an exchange: behind its connector's permit, so that every request buys a token."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from collector.clock import Clock, SystemClock
from collector.connectors.permit import ConnectorPermit
from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.provider import Access
from collector.exchanges.registry import open_exchange, provider_of, quirks_for
from collector.secrets import Keyring

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.limiter import Limiter
    from collector.exchanges.exclusive import SessionRight
    from collector.exchanges.port import Exchange
    from collector.exchanges.quirks import Quirks
    from collector.mongo.client import Database
    from collector.settings import Settings


@dataclass(frozen=True, slots=True)
class ExchangeAccess:
    """How a process opens exchanges: whose tokens it buys, and the settings of each.

    patience    seconds that a request may wait for its token page_sizes  bars per request, where it
    is configured sections    an exchange's own section of the settings, by its id
    """

    database: Database
    limiter: Limiter
    patience: float
    urls: Mapping[str, str] = field(default_factory=dict)
    timeout_ms: int | None = None
    page_sizes: Mapping[str, int] = field(default_factory=dict)
    keyring: Keyring = field(default_factory=Keyring)
    clock: Clock = field(default_factory=SystemClock)
    sections: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(
        cls, settings: Settings, database: Database, limiter: Limiter, patience: float
    ) -> ExchangeAccess:
        return cls(
            database,
            limiter,
            patience,
            urls=settings.addresses,
            timeout_ms=settings.api.timeout_ms,
            page_sizes=settings.api.page_sizes,
            keyring=settings.keyring,
            sections={"fxcm": settings.fxcm},
        )

    async def open(
        self, exchange_id: str, session: SessionRight | None = None
    ) -> tuple[Exchange, Quirks]:
        """The exchange, to be closed by the caller. Sends nothing yet.

        SessionNotHeld when its account allows one login and `session` is not the right to it.
        """
        # Importing an exchange takes too long to block other tasks of the process.
        quirks = await asyncio.to_thread(quirks_for, exchange_id)
        page = self.page_sizes.get(exchange_id, quirks.default_page)
        quirks = replace(quirks, default_page=min(page, quirks.largest_page))
        registry = ConnectorRegistry(self.database)
        permit = ConnectorPermit(self.limiter, registry, quirks, patience=self.patience)
        exchange = await asyncio.to_thread(
            open_exchange,
            exchange_id,
            permit,
            urls=self.urls,
            clock=self.clock,
            timeout_ms=self.timeout_ms,
            key=self.keyring.credentials(exchange_id),
            home=self.keyring.home,
            session=session,
            section=self.sections.get(exchange_id),
        )
        return exchange, quirks

    async def lacking(self, exchange_id: str) -> str | None:
        """What keeps this machine from opening the exchange; None when nothing does."""
        section = self.sections.get(exchange_id)
        access = Access(self.clock, self.urls, home=self.keyring.home, section=section)
        return await provider_of(exchange_id).lacking(exchange_id, access)
