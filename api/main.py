"""An API process from start to end: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from api.app import Door, create_app
from api.connection_bounds import (
    BoundedConnection,
    UnreadConnections,
    WaitingConnections,
    waiting_allowed,
)
from api.deps import Services
from api.feed import ChangeFeed
from collector import logs
from collector.connectors.limiter import Limiter
from collector.keys import ApiKeys
from collector.listening import address_of, host_names, listen
from collector.mongo.client import Database
from collector.mongo.schema import require_current
from collector.mongo.schema_watch import leaving_newer_schema
from collector.operations.exchange_access import ExchangeAccess
from collector.operations.market_desk import PATIENCE_SECONDS, MarketDesk
from collector.operations.wishes import recording
from collector.reports.validation import Demands
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socket import socket

    from fastapi import FastAPI

    from collector.settings import Settings

_log = logs.get("api")
GRACE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen and which keys to accept, decided before anything is started."""

    host: str
    port: int
    door: Door

    @classmethod
    def of(
        cls, settings: Settings, host: str | None = None, port: int | None = None
    ) -> ListenAddress:
        """The command line wins over the settings. ConfigError when it would not be safe."""
        secret = settings.api_keys
        keys = ApiKeys.parse(secret.get_secret_value() if secret else None)
        where = settings.server.host if host is None else host
        door = Door(keys=keys, names=host_names(where, keys))
        return cls(where, settings.server.port if port is None else port, door)


async def serve(settings: Settings, uri: str, listening: ListenAddress) -> None:
    """Serves until a signal; requests under way get a moment to end."""
    with contextlib.closing(listen(listening.host, listening.port)) as sock:
        async with (
            Database(uri, settings.mongo_db) as database,
            Limiter(database, use_global=settings.global_limit is not None) as limiter,
        ):
            await database.reach()
            await require_current(database)
            services = Services(
                database=database,
                store=Store(settings.data_root),
                desk=MarketDesk(
                    database, ExchangeAccess.of(settings, database, limiter, PATIENCE_SECONDS)
                ),
                feed=ChangeFeed(database),
                demands=Demands(
                    max_gap_pct=settings.quality.max_gap_pct,
                    strict_gaps=settings.resample.strict_gaps,
                ),
                history=settings.history.terms,
            )
            server = Server(create_app(services, listening.door), services)
            # The process that started us may have given port 0 and reads the real one here.
            print(f"the API listens on {address_of(sock)}", flush=True)
            _log.info(
                "api_started", address=address_of(sock), keys=len(listening.door.keys.entries)
            )
            async with (
                leaving_newer_schema(database, server.stop),
                recording(database, services.store.storage),
            ):
                await server.serve(sockets=[sock])
            _log.info("api_stopped")


class Server(uvicorn.Server):
    """uvicorn, except that a signal is a wish to stop and not a way to die: the exit code is 0."""

    def __init__(
        self,
        app: FastAPI,
        services: Services,
        waiting: WaitingConnections | None = None,
        unread: UnreadConnections | None = None,
    ) -> None:
        bounds = {
            "waiting": WaitingConnections(waiting_allowed()) if waiting is None else waiting,
            "unread": UnreadConnections() if unread is None else unread,
        }
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(BoundedConnection, **bounds),  # type: ignore[arg-type]
                lifespan="on",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._services = services

    def stop(self) -> None:
        """No new requests; listeners of events are let go, for they would stay for ever."""
        self.should_exit = True
        self._services.feed.close()

    async def serve(self, sockets: list[socket] | None = None) -> None:
        """Until `stop`, or a signal."""
        with self.capture_signals():
            await self._serve(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def on_signal(number: int) -> None:
            if self.should_exit:
                # The second one means it. Nothing here needs tidying up.
                os._exit(128 + number)
            _log.info("stopping", signal=signal.Signals(number).name)
            self.stop()

        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, on_signal, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
