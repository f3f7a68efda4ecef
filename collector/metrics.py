"""Every metric that a process counts itself, by name, once.

Gauges that are facts of the database (budgets, jobs, lag, bans) are not here: the API alone reads
them at the scrape (api/figures.py), so that a fleet does not report one fact many times.
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
TOKENS_CHARGED = Counter(
    "collector_tokens_charged_total", "Requests that were late and counted once more", ["exchange"]
)
RATE_LIMIT_MARGIN = Gauge(
    "collector_rate_limit_margin_seconds",
    "How much longer than its period a window counts a grant",
    ["exchange", "unit", "period_ms"],
)
LEASE_LOST = Counter("collector_lease_lost_total", "Leases this process lost")
JOBS_RESCUED = Counter(
    "collector_jobs_rescued_total", "Jobs taken over from a worker that stopped renewing"
)
RUNS_INTERRUPTED = Counter(
    "collector_runs_interrupted_total",
    "Runs of history that ended after their page because a more urgent job was due",
    ["exchange"],
)
JOBS_SET_ASIDE = Counter(
    "collector_jobs_set_aside_total", "Jobs set aside because their workers kept dying"
)
DUTY_FAILURES = Counter(
    "collector_duty_failures_total", "Rounds of a worker's own duties that failed", ["duty"]
)
REQUESTS = Counter(
    "collector_requests_total", "Requests sent to exchanges", ["exchange", "endpoint", "outcome"]
)
REQUEST_SECONDS = Histogram(
    "collector_request_seconds", "Time an exchange took to answer", ["exchange", "endpoint"]
)
PAGES_RETRIED = Counter(
    "collector_pages_retried_total", "Pages requested again after a temporary fault", ["exchange"]
)
BARS_WRITTEN = Counter(
    "collector_bars_written_total", "Bars made durable", ["exchange", "timeframe"]
)
STORE_ERRORS = Counter(
    "collector_store_errors_total",
    "Writes that the disk or the object store could not take",
    ["exchange"],
)
DISK_FREE = Gauge("collector_disk_free_bytes", "Free bytes on the disk of the lake")
DISK_TOTAL = Gauge("collector_disk_total_bytes", "Bytes that the disk of the lake has")
SERIES_DAMAGED = Counter(
    "collector_series_damaged_total",
    "Times a series was left out because one of its files is damaged",
    ["exchange"],
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
HISTORY_TRADES = Counter(
    "collector_history_trades_total",
    "Inputs of events that were applied, by what became of them",
    ["network", "outcome"],
)
HISTORY_REBUILDS = Counter(
    "collector_history_rebuilds_total", "Buckets made again after a deletion", ["network"]
)
HISTORY_REBUILD_SECONDS = Counter(
    "collector_history_rebuild_seconds_total", "Time that making buckets again took", ["network"]
)
HISTORY_LAST_REBUILD = Gauge(
    "collector_history_last_rebuild_seconds", "Time that the last bucket took", ["network"]
)
TICKS = Counter("collector_ticks_total", "Prices that arrived on a stream", ["exchange"])
TICK_ERRORS = Counter(
    "collector_tick_errors_total", "Messages of a stream without a usable price", ["exchange"]
)
TICKS_DROPPED = Counter(
    "collector_ticks_dropped_total",
    "Prices dropped because they were not taken in time",
    ["exchange"],
)
PRICES_PUBLISHED = Counter(
    "collector_prices_published_total", "Prices handed to the publishers", ["exchange"]
)
STREAM_RECONNECTS = Counter(
    "collector_stream_reconnects_total",
    "Connections of a stream that were opened anew",
    ["exchange"],
)
TICK_SILENCE = Gauge(
    "collector_tick_silence_seconds", "Time since the last price of a stream", ["exchange"]
)
DATABASE_OUTAGES = Counter("collector_database_outages_total", "Times MongoDB became unreachable")
API_REQUESTS = Counter(
    "collector_api_requests_total", "Requests answered", ["method", "route", "status"]
)
API_REQUEST_SECONDS = Histogram(
    "collector_api_request_seconds", "Time until the answer was complete", ["method", "route"]
)
API_CONNECTIONS_DROPPED = Counter(
    "collector_api_connections_dropped_total",
    "Connections closed without a request, or with an unread answer",
    ["reason"],
)
PUBLISHED = Counter(
    "collector_published_total", "Messages published to Redis, by channel", ["channel"]
)
PUBLICATION_REFUSED = Counter(
    "collector_publication_refused_total",
    "Offers that Redis refused because a later owner has published",
    ["channel"],
)
STREAM_ENQUEUED = Counter(
    "collector_stream_enqueued_total", "Messages taken over for publication", ["queue"]
)
STREAM_PROCESSED = Counter("collector_stream_processed_total", "Messages delivered", ["queue"])
STREAM_DROPPED = Counter(
    "collector_stream_dropped_total", "Messages that a newer one replaced or that failed", ["queue"]
)
STREAM_BACKPRESSURE = Counter(
    "collector_stream_backpressure_total", "Messages refused because a queue was full", ["queue"]
)
STREAM_DEPTH = Gauge(
    "collector_stream_queue_depth", "Messages that wait or are being delivered", ["queue"]
)
FXCM_BACKOFF_EVENTS = Counter(
    "fxcm_backoff_events_total",
    "Pauses after failures, of `fxcm_history` and of `redis`",
    ["type"],
)
FXCM_BACKOFF_SLEEP = Histogram(
    "fxcm_backoff_sleep_seconds",
    "How long those pauses are",
    ["type"],
    buckets=(2, 5, 10, 20, 40, 60, 90, 120, 180, 300),
)
