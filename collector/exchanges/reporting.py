"""How adapters report to their permit: once for every request, and always to the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.exchanges.port import Answer, Permit


async def report(permit: Permit, answer: Answer) -> None:
    """Returns when the permit has taken it. A cancellation waits for that and is raised then."""
    reporting = asyncio.ensure_future(permit.after(answer))
    try:
        await asyncio.shield(reporting)
    except asyncio.CancelledError:
        await asyncio.gather(reporting, return_exceptions=True)
        raise
