"""Every error of Collector, grouped by the reaction it needs.

CollectorError
├── RetryLater                 the same work again, later
│   ├── RateLimited            our own budget is spent: wait, this is not a fault
│   ├── ExchangeBlocked        the exchange demands a stop: every caller waits until `until_ms`
│   ├── ExchangeUnavailable    time-outs, 5xx, broken answers: back off, count in the circuit
│   ├── ExchangeRefused        a bare 4xx, perhaps of a gateway: back off; lasting after a day of it
│   ├── MarketsUnavailable     markets are not known yet and could not be loaded
│   ├── SessionNotHeld         another process holds the account's only session
│   ├── DatabaseUnavailable    MongoDB cannot be reached
│   │   └── DatabaseRefused    E_AUTH: it does not accept this user or password
│   ├── ApiUnavailable         the API of a collector does not answer
│   └── SinkBackpressure       a queue of messages to be published is full
├── StopWork                   stop the work at once, another worker has it now
│   ├── LeaseLost              the fence has moved on
│   └── JobStopped             paused, deleted or drained: keep the cursor, leave
├── NeedsOperator              an operator has to act; retrying changes nothing
│   ├── ConfigError            E_CONFIG
│   │   ├── HomeInUse          another process owns this home
│   │   ├── MongodMissing      no mongod found to embed
│   │   ├── MongodFailed       mongod was found and would not start
│   │   └── SchemaMismatch     the database is newer (or older) than this program
│   ├── CostNeverFits          a request weighs more than its whole window
│   ├── BadRequest             refused by the venue: unknown symbol, delisted, not in this country
│   │   └── NotServed          bars older than the venue keeps: go on at `from_ms`
│   ├── KeyRefused             E_AUTH: an exchange key that can do more than read, or is not known
│   ├── ApiRefused             E_AUTH: the API does not accept the key, or not for this
│   ├── StoreError             E_WRITE: the lake could not be written; see store.port
│   ├── DataInvalid            E_SCHEMA: what is stored is not what it should be
│   ├── TimeDrift              E_TIME_DRIFT: a clock is too far off
│   └── GapsExceeded           E_GAPS: more is missing than the rule allows
├── JobConflict                the job is not in a state that allows this
│   └── ActiveJobs             a connector whose jobs are active does not go
├── Changed                    it is no longer as it was when the caller last looked
├── InvalidInput               E_USAGE: the request is invalid; names the field
└── NotFound                   no such connector or job
    └── NotStored              nothing is stored by that name; lists similar names

`exit_code` is what a command line exits with, `code` what a machine may match on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence


class CollectorError(Exception):
    """Anything Collector raises on purpose."""

    code: str = "error"
    exit_name: ClassVar[str] = "E_API"
    exit_code: ClassVar[int] = 3


class RetryLater(CollectorError):
    """The same work may succeed later. `retry_after_ms` is a hint, None when there is none."""

    code = "retry_later"

    def __init__(self, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class RateLimited(RetryLater):
    """Our own limiter denied a token. Not a fault: save the cursor and come back."""

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
        """`retry_at_ms` is the same moment on the server's clock, for long waits."""
        super().__init__(
            f"{exchange_id}: no token for {retry_after_ms} ms ({reason})",
            retry_after_ms=retry_after_ms,
        )
        self.exchange_id = exchange_id
        self.reason = reason
        self.retry_at_ms = retry_at_ms


class ExchangeBlocked(RetryLater):
    """The exchange demands a stop (429, 418, a ban). No request may be sent before it is over.

    `ban`: more than an exceeded limit; without an end of its own it lasts longer.
    """

    code = "exchange_blocked"
    exit_name = "E_RATE_LIMIT"
    exit_code = 4

    def __init__(
        self,
        exchange_id: str,
        reason: str,
        *,
        retry_after_ms: int | None = None,
        ban: bool = False,
    ) -> None:
        super().__init__(f"{exchange_id}: blocked ({reason})", retry_after_ms=retry_after_ms)
        self.exchange_id = exchange_id
        self.reason = reason
        self.ban = ban


class ExchangeUnavailable(RetryLater):
    """A time-out, a 5xx or an answer that cannot be read."""

    code = "exchange_unavailable"


class ExchangeRefused(RetryLater):
    """A refusal without the venue's own error, such as a gateway's 404. It may be over soon.

    `kind` decides whether two of them are the same. The same one for a day counts as permanent.
    """

    code = "exchange_refused"

    def __init__(self, message: str, *, kind: str, retry_after_ms: int | None = None) -> None:
        super().__init__(message, retry_after_ms=retry_after_ms)
        self.kind = kind


class MarketsUnavailable(RetryLater):
    """The exchange's markets are not known yet."""

    code = "markets_unavailable"


class SessionNotHeld(RetryLater):
    """The account allows one login, and this process does not hold the right to it."""

    code = "session_not_held"


class DatabaseUnavailable(RetryLater):
    """MongoDB cannot be reached, or has no primary."""

    code = "database_unavailable"


class DatabaseRefused(DatabaseUnavailable):
    """MongoDB does not let this user in, or not that far.

    A running worker retries, because a password may just be changing. A starting program ends.
    """

    code = "database_refused"
    exit_name = "E_AUTH"
    exit_code = 9


class ApiUnavailable(RetryLater):
    """The API of a collector does not answer, or is none."""

    code = "api_unavailable"


class SinkBackpressure(RetryLater):
    """A queue of messages to be published is full: the mark stays, the collecting goes on."""


class StopWork(CollectorError):
    """The current work is no longer ours to continue."""

    code = "stop_work"


class LeaseLost(StopWork):
    """Another worker holds the job, or may by now."""

    code = "lease_lost"


class JobStopped(StopWork):
    """The job was paused or deleted, or the worker is draining. The cursor is kept."""

    code = "job_stopped"


class NeedsOperator(CollectorError):
    """Nothing will change until an operator acts. The message describes the action."""

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
    """The exchange will never serve this: unknown symbol, delisted, not in this country."""

    code = "bad_request"


class NotServed(BadRequest):
    """The venue no longer serves bars this old. From `from_ms` on it does."""

    code = "not_served"

    def __init__(self, message: str, *, from_ms: int) -> None:
        super().__init__(message)
        self.from_ms = from_ms


class KeyRefused(NeedsOperator):
    """The key of an exchange may trade or withdraw, or the venue does not accept it."""

    code = "key_refused"
    exit_name = "E_AUTH"
    exit_code = 9


class ApiRefused(NeedsOperator):
    """The API of a collector does not accept the key, or its role does not allow this."""

    code = "api_refused"
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


class ActiveJobs(JobConflict):
    """A connector stays as long as jobs of its exchange are active."""

    code = "active_jobs"

    def __init__(self, exchange_id: str, count: int) -> None:
        jobs = "1 active job" if count == 1 else f"{count} active jobs"
        super().__init__(f"{exchange_id} has {jobs}: pause or delete them, or cascade")


class Changed(CollectorError):
    """It was to be changed only if it is still as the caller knew it, and it is not."""

    code = "changed"


class InvalidInput(CollectorError):
    """A value that is well formed and still wrong, from any front end.

    `field` is what REST calls it, `code` is for machines, `near` are similar known values. Fields
    are in backticks in the reason, so that a front end can write them its own way.
    """

    exit_name = "E_USAGE"
    exit_code = 2

    def __init__(self, field: str, code: str, reason: str, near: Sequence[str] = ()) -> None:
        *others, last = near or ("",)
        options = f"{', '.join(others)} or {last}" if others else last
        super().__init__(f"{reason}; did you mean {options}?" if near else reason)
        self.field = field
        self.code = code
        self.near = tuple(near)


class NotFound(CollectorError):
    """No such connector or job."""

    code = "not_found"


class NotStored(NotFound):
    """Nothing is stored by that name. `near` are similar names that are stored."""

    code = "not_stored"

    def __init__(self, message: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.near = near
