"""Every route, one file a noun.

These files do without `from __future__ import annotations`: FastAPI reads annotations at run time.
"""

from __future__ import annotations

from api.routes import (
    candles,
    connectors,
    events,
    jobs,
    markets,
    process,
    runs,
    streams,
)

ROUTERS = (
    connectors.router,
    jobs.router,
    runs.router,
    streams.router,
    markets.router,
    candles.router,
    events.router,
    process.router,
)
