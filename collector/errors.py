"""Every error of Collector, grouped by the reaction it asks for.

CollectorError
├── RetryLater                 the same work again, later
│   ├── RateLimited            our own budget is spent: wait, this is not a fault
│   ├── ExchangeBlocked        the exchange said stop: everyone waits until `until_ms`
│   ├── ExchangeUnavailable    time-outs, 5xx, broken answers: back off, count in the circuit
│   ├── MarketsUnavailable     markets are not known yet and could not be loaded
│   └── DatabaseUnavailable    MongoDB cannot be reached
├── StopWork                   put the work down at once, it belongs to someone else now
│   ├── LeaseLost              the fence has moved on
│   └── JobStopped             paused, deleted or drained: keep the cursor, leave
├── NeedsOperator              a person has to act; trying again changes nothing
│   ├── ConfigError            E_CONFIG
│   │   ├── HomeInUse          another process owns this home
│   │   ├── MongodMissing      no mongod found to embed
│   │   ├── MongodFailed       mongod was found and would not start
│   │   └── SchemaMismatch     the database is newer (or older) than this program
│   ├── CostNeverFits          a request weighs more than its whole window
│   ├── BadRequest             the exchange refused what was asked (unknown symbol, 451, ...)
│   ├── KeyRefused             E_AUTH: an exchange key that can do more than read, or is not known
│   ├── StoreError             E_WRITE: the lake could not be written; see store.port
│   ├── DataInvalid            E_SCHEMA: what is stored is not what it should be
│   ├── TimeDrift              E_TIME_DRIFT: a clock is too far off
│   └── GapsExceeded           E_GAPS: more is missing than the rule allows
├── JobConflict                the job is not in a state that allows this
└── NotFound                   no such connector or job

`exit_code` is what a command line exits with, `code` what a machine may match on.
"""

from __future__ import annotations

from typing import ClassVar


class CollectorError(Exception):
    """Anything Collector raises on purpose."""

    code: ClassVar[str] = "error"
    exit_name: ClassVar[str] = "E_API"
    exit_code: ClassVar[int] = 3


class RetryLater(CollectorError):
    """The same work may succeed later. `retry_after_ms` is a hint, None when there is none."""

    code = "retry_later"

    def __init__(self, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class RateLimited(RetryLater):
    """Our own limiter said no. Not a fault of anyone: save the cursor and come back."""

    code = "rate_limited"
    exit_name = "E_RATE_LIMIT"
    exit_code = 4

    def __init__(
        self,
        exchange_id: str,
        retry_after_ms: int,
        reason: str,
        *,
        retry_at_ms: int | None = None,
    ) -> None:
        """`retry_at_ms` is the same moment on the server's clock, for whoever waits long."""
        super().__init__(
            f"{exchange_id}: no token for {retry_after_ms} ms ({reason})",
            retry_after_ms=retry_after_ms,
        )
        self.exchange_id = exchange_id
        self.reason = reason
        self.retry_at_ms = retry_at_ms


class ExchangeBlocked(RetryLater):
    """The exchange told us to stop (429, 418, a ban). Nobody may ask before it is over."""

    code = "exchange_blocked"
    exit_name = "E_RATE_LIMIT"
    exit_code = 4

    def __init__(self, exchange_id: str, reason: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(f"{exchange_id}: blocked ({reason})", retry_after_ms=retry_after_ms)
        self.exchange_id = exchange_id
        self.reason = reason


class ExchangeUnavailable(RetryLater):
    """A time-out, a 5xx or an answer that cannot be understood."""

    code = "exchange_unavailable"


class MarketsUnavailable(RetryLater):
    """The exchange's markets are not known yet."""

    code = "markets_unavailable"


class DatabaseUnavailable(RetryLater):
    """MongoDB cannot be reached, or has no primary."""

    code = "database_unavailable"


class StopWork(CollectorError):
    """The work in hand is no longer ours to continue."""

    code = "stop_work"


class LeaseLost(StopWork):
    """Someone else holds the job, or may by now."""

    code = "lease_lost"


class JobStopped(StopWork):
    """The job was paused or deleted, or the worker is draining. The cursor is kept."""

    code = "job_stopped"


class NeedsOperator(CollectorError):
    """Nothing will change until a person does something. The message says what."""

    code = "needs_operator"


class ConfigError(NeedsOperator):
    code = "bad_config"
    exit_name = "E_CONFIG"
    exit_code = 8


class HomeInUse(ConfigError):
    """Another process owns the embedded database of this home."""

    code = "home_in_use"


class MongodMissing(ConfigError):
    code = "mongod_missing"


class MongodFailed(ConfigError):
    code = "mongod_failed"


class SchemaMismatch(ConfigError):
    """The database's schema is not the one this program was written for."""

    code = "schema_mismatch"


class CostNeverFits(NeedsOperator):
    """A request that costs more than its window ever holds would wait for ever."""

    code = "cost_never_fits"
    exit_name = "E_RATE_LIMIT"
    exit_code = 4


class BadRequest(NeedsOperator):
    """The exchange will never answer this: unknown symbol, delisted, not in this country."""

    code = "bad_request"


class KeyRefused(NeedsOperator):
    """The key of an exchange may trade or withdraw, or the venue does not accept it."""

    code = "key_refused"
    exit_name = "E_AUTH"
    exit_code = 9


class StoreError(NeedsOperator):
    """The lake could not be written or read."""

    code = "store_error"
    exit_name = "E_WRITE"
    exit_code = 7


class DataInvalid(NeedsOperator):
    """What is stored fails a check."""

    code = "data_invalid"
    exit_name = "E_SCHEMA"
    exit_code = 5


class TimeDrift(NeedsOperator):
    """This machine's clock and an exchange's are too far apart."""

    code = "time_drift"
    exit_name = "E_TIME_DRIFT"
    exit_code = 6


class GapsExceeded(NeedsOperator):
    """More of a series is missing than the rule allows."""

    code = "gaps_exceeded"
    exit_name = "E_GAPS"
    exit_code = 10


class JobConflict(CollectorError):
    """The job is not in a state that allows this."""

    code = "job_conflict"


class NotFound(CollectorError):
    """No such connector or job."""

    code = "not_found"
