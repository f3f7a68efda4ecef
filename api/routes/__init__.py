"""Every route, one file a noun.

These files do without `from __future__ import annotations`: FastAPI reads annotations at run time.
"""

from __future__ import annotations

from api.routes import (
    bulk_jobs,
    candles,
    census,
    connectors,
    coverage,
    events,
    exchanges,
    history,
    jobs,
    live,
    markets,
    me,
    process,
    quarantine,
    reports,
    runs,
    status,
    stored_series,
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
    exchanges.router,
    markets.router,
    tickers.router,
    live.router,
    candles.router,
    stored_series.router,
    trades.router,
    history.router,
    coverage.router,
    reports.router,
    quarantine.router,
    events.router,
    workers.router,
    troubles.router,
    census.router,
    me.router,
    status.router,
    process.router,
)
