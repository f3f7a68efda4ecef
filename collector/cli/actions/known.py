"""Checks of what was typed against what is known, with near matches for what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import NotFound
from collector.exchanges.registry import known_exchanges
from collector.market.near import did_you_mean

if TYPE_CHECKING:
    from collector.fleet.interface import Fleet, Shown

NO_WORKER = "no worker is running: start one with `collector up` or `collector worker`"


async def existing_connector(fleet: Fleet, exchange_id: str) -> Shown:
    """The connector. NotFound lists the existing ones, or how to create it."""
    try:
        return await fleet.connectors.get(exchange_id)
    except NotFound:
        made = [connector["exchange_id"] for connector in await fleet.connectors.all()]
        if exchange_id in known_exchanges():
            hint = f": collector connector add {exchange_id}"
        else:
            hint = did_you_mean(exchange_id, made or known_exchanges())
        raise NotFound(f"there is no connector {exchange_id!r}{hint}") from None


async def no_worker_note(fleet: Fleet) -> list[str]:
    """A hint after creating work while no worker is running; empty otherwise."""
    return [] if await fleet.overview.workers() else [NO_WORKER]
