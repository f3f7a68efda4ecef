"""Every route, one file a noun.

These files do without `from __future__ import annotations`: FastAPI reads annotations at run time.
"""

from __future__ import annotations

from api.routes import (
    candles,
    connectors,
    coverage,
    events,
    jobs,
    markets,
    process,
    reports,
    runs,
    streams,
    tickers,
    trades,
    workers,
)

ROUTERS = (
    connectors.router,
    jobs.router,
    runs.router,
    streams.router,
    markets.router,
    tickers.router,
    candles.router,
    trades.router,
    coverage.router,
    reports.router,
    events.router,
    workers.router,
    process.router,
)
