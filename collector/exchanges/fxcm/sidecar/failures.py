"""What a failed call means, judged by its text: the SDK raises bare exceptions.

login_refused    the server does not accept this user and password
login_doubtful   the server knows no such user; it answers so in outages, too
unavailable      no connection, no answer in time, a server in trouble
session_lost     there is no session, or no longer
not_ready        history cannot be requested yet; normal while the market is closed
no_data          the server has no history there; normal while the market is closed
limited          the server counts too many requests
bad_request      it will never be answered: unknown instrument, timeframe or field
sdk_missing      the SDK cannot be imported
protocol         a line that is not a request
busy             too many requests are waiting
lease_expired    the parent's lease passed; the sidecar is logging out
callback         a callback of the SDK failed; what it brought is lost
unknown          none of these
"""

from __future__ import annotations

# The first text that occurs decides. Texts of the SDK's libraries in version 1.6.43, and what its
# servers are known to answer.
_TEXTS = (
    ("Incorrect user name or password", "login_refused"),
    ("Access denied", "login_refused"),
    ("User or connection doesn't exist", "login_doubtful"),
    ("Session expired", "session_lost"),
    ("Session is not valid", "session_lost"),
    ("IO2GSessionIsNull", "session_lost"),
    ("is not ready", "not_ready"),
    ("code: NotReady", "not_ready"),
    ("code: QuotesNotFound", "no_data"),
    ("does not contain any slices", "no_data"),
    ("code: LimitReached", "limited"),
    ("code: BadArgument", "bad_request"),
    ("Invalid timeframe", "bad_request"),
    ("Timeframe is incorrect", "bad_request"),
    ("Unsupported timeframe", "bad_request"),
    ("Instrument is not found", "bad_request"),
    ("Invalid dates range", "bad_request"),
    ("ORA-499", "unavailable"),
    ("HTTP request failed", "unavailable"),
    ("Unable to parse descriptor data", "unavailable"),
    ("Wait timeout exceeded", "unavailable"),
    ("Not connected", "unavailable"),
    ("Table manager not ready", "unavailable"),
    ("Cannot refresh all tables", "unavailable"),
    ("QuotesManager error", "unavailable"),
)


class RefusedRequest(Exception):
    """A request the sidecar turns down itself."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def kind_of(error: BaseException) -> str:
    if isinstance(error, RefusedRequest):
        return error.kind
    text = str(error)
    for part, kind in _TEXTS:
        if part in text:
            return kind
    return "unknown"


def described(error: BaseException, secret: str = "") -> dict[str, str]:
    """The error as it goes over the wire. What is secret is cut out of its text."""
    message = str(error)
    if secret:
        message = message.replace(secret, "***")
    return {"kind": kind_of(error), "type": type(error).__name__, "message": message}
