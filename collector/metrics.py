"""Every metric that a process counts itself, by name, once.

Gauges that are facts of the database (budgets, jobs, lag, bans) are not here: the API alone reads
them at the scrape (api/figures.py), so that no fleet tells one fact many times.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

RATE_LIMIT_SATURATED = Counter(
    "collector_rate_limit_saturated_total", "Times the budget was spent", ["exchange"]
)
TOKENS_DENIED = Counter(
    "collector_tokens_denied_total", "Tokens denied, by reason", ["exchange", "reason"]
)
TOKENS_STALE = Counter(
    "collector_tokens_stale_total", "Tokens that arrived too late to be spent safely", ["exchange"]
)
LEASE_LOST = Counter("collector_lease_lost_total", "Leases this process lost")
JOBS_RESCUED = Counter(
    "collector_jobs_rescued_total", "Jobs taken over from a worker that stopped renewing"
)
JOBS_SET_ASIDE = Counter(
    "collector_jobs_set_aside_total", "Jobs set aside because their workers kept dying"
)
REQUESTS = Counter(
    "collector_requests_total", "Requests sent to exchanges", ["exchange", "endpoint", "outcome"]
)
REQUEST_SECONDS = Histogram(
    "collector_request_seconds", "Time an exchange took to answer", ["exchange", "endpoint"]
)
BARS_WRITTEN = Counter(
    "collector_bars_written_total", "Bars made durable", ["exchange", "timeframe"]
)
GAP_RATIO = Gauge(
    "collector_gap_ratio",
    "Share of a series that is missing, when it was last reported on",
    ["exchange", "symbol", "timeframe"],
)
CIRCUIT_STATE = Gauge(
    "circuit_state", "The circuit gate: OPEN=0, TRIPPED=1, HALF_OPEN=2", ["exchange"]
)
CIRCUIT_TRANSITIONS = Counter(
    "circuit_transitions_total",
    "Changes of a circuit gate that this process made",
    ["exchange", "from", "to"],
)
CIRCUIT_ERR_RATE = Gauge(
    "circuit_err_rate_window", "Share of errors in a circuit gate's window", ["exchange"]
)
EXCHANGE_CLOCK_DRIFT = Gauge(
    "collector_exchange_clock_drift_seconds",
    "How far the exchange's clock is ahead of MongoDB's, when it was last measured",
    ["exchange"],
)
DATABASE_OUTAGES = Counter("collector_database_outages_total", "Times MongoDB became unreachable")
API_REQUESTS = Counter(
    "collector_api_requests_total", "Requests answered", ["method", "route", "status"]
)
API_REQUEST_SECONDS = Histogram(
    "collector_api_request_seconds", "Time until the answer was complete", ["method", "route"]
)
FXCM_BACKOFF_EVENTS = Counter(
    "fxcm_backoff_events_total",
    "Pauses before FXCM is tried again; none before it is there",
    ["type"],
)
FXCM_BACKOFF_SLEEP = Gauge("fxcm_backoff_sleep_seconds", "How long the pause under way is")
