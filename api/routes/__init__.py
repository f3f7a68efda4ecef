"""Every route, one file a noun.

These files do without `from __future__ import annotations`: FastAPI reads annotations at run time.
"""

from __future__ import annotations

from api.routes import (
    bulk_jobs,
    candles,
    connectors,
    coverage,
    events,
    history,
    jobs,
    live,
    markets,
    process,
    quarantine,
    reports,
    runs,
    status,
    streams,
    tickers,
    trades,
    troubles,
    workers,
)

ROUTERS = (
    connectors.router,
    bulk_jobs.router,  # before `jobs/{job_id}`, which would take its verbs for ids
    jobs.router,
    runs.router,
    streams.router,
    markets.router,
    tickers.router,
    live.router,
    candles.router,
    trades.router,
    history.router,
    coverage.router,
    reports.router,
    quarantine.router,
    events.router,
    workers.router,
    troubles.router,
    status.router,
    process.router,
)
